package policy

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// random returns a random input.
func random(r *rand.Rand) *Input {
	in := &Input{Times: new(StepTimes)}
	for range r.IntN(40) {
		n := 1 + r.IntN(200)
		in.Times.Measure(n, time.Duration(n)*time.Duration(1+r.IntN(1e6)))
	}
	in.Limits = Limits{Tokens: 1 + r.IntN(300), Rows: 1 + r.IntN(20), Pages: r.IntN(30), PageRows: 64, Whole: r.IntN(6) == 0}
	in.Objective.StepTime = []time.Duration{0, time.Microsecond, 11 * time.Millisecond, time.Hour}[r.IntN(4)]
	for range 1 + r.IntN(20) {
		q := Request{Length: 1 + r.IntN(300), Priority: r.IntN(3), Blocked: r.IntN(8) == 0, Waited: r.IntN(40), Rows: 1}
		switch r.IntN(3) {
		case 0:
			q.Done, q.Decoding, q.Draft = q.Length-1, true, r.IntN(5)
			q.Pages = (q.Done + 63) / 64
		case 1:
			q.Cached = q.Length / 64 * 64
			if q.Cached == q.Length {
				q.Cached -= 64
			}
			q.CachedPages = min(in.Limits.Pages, r.IntN(q.Cached/64+1))
		}
		q.RowFrom = q.Length - 1
		in.Requests = append(in.Requests, q)
	}
	in.Limits.Requests = 1 + r.IntN(len(in.Requests))
	if r.IntN(2) == 0 {
		in.Limits.CellRows, in.Limits.Cells = 16, r.IntN(15)
		for i := range in.Requests {
			if q := &in.Requests[i]; q.Cached > 0 {
				q.CachedCells = min(in.Limits.Cells, r.IntN(2))
			}
		}
	}
	return in
}

// TestNext checks that a batch keeps the limits, contains only pending tokens, depends
// only on the input and leaves it unchanged, and is empty only for lack of pages,
// cells or rows.
func TestNext(t *testing.T) {
	t.Parallel()
	var reused Batch
	for seed := range uint64(20_000) {
		in, same := random(rand.New(rand.NewPCG(seed, 7))), random(rand.New(rand.NewPCG(seed, 7)))
		var b Batch
		Next(in, &b)
		if !reflect.DeepEqual(in, same) {
			t.Fatalf("seed %d: the input was changed", seed)
		}
		if Next(in, &reused); !slices.Equal(b.Parts, reused.Parts) || b.Short != reused.Short || b.NoDrafts != reused.NoDrafts {
			t.Fatalf("seed %d: %+v, then %+v", seed, b, reused)
		}
		tokens, rows, pages, cells := 0, 0, 0, 0
		for i, p := range b.Parts {
			r := &in.Requests[p.Request]
			if r.Blocked || p.Tokens < 1 || p.Tokens > r.Pending() || p.Draft > r.Draft || slices.ContainsFunc(b.Parts[:i], func(o Part) bool { return o.Request == p.Request }) {
				t.Fatalf("seed %d: %+v of %+v", seed, p, r)
			}
			if need := r.Done + r.Cached + p.Tokens + p.Draft; p.Pages*64 < need {
				t.Fatalf("seed %d: %+v has %d rows of pages for %d", seed, p, p.Pages*64, need)
			}
			tokens, rows = tokens+p.Tokens+p.Draft, rows+p.Rows+p.Draft
			pages += p.Pages - r.Pages - r.Cached/64 + r.CachedPages
			if in.Limits.CellRows > 0 { // those of the last token and after it are kept, if they are new
				done := r.Done + r.Cached
				held := (done + 15) / 16
				cells += (done+p.Tokens+p.Draft+15)/16 - max(held, (done+p.Tokens-1)/16) + r.CachedCells
			}
		}
		if tokens > in.Limits.Tokens || rows > in.Limits.Rows || pages > in.Limits.Pages || cells > in.Limits.Cells || len(b.Parts) > in.Limits.Requests {
			t.Fatalf("seed %d: %d tokens, %d rows, %d pages, %d cells of %d requests: %+v", seed, tokens, rows, pages, cells, len(b.Parts), in.Limits)
		}
		open := slices.ContainsFunc(in.Requests, func(r Request) bool { return !r.Blocked })
		if len(b.Parts) == 0 && b.Short < 0 && open && !in.Limits.Whole {
			t.Fatalf("seed %d: nothing is computed of %+v", seed, in.Requests)
		}
	}
}

// TestEnd checks that requests that come and go at random all end, none after more
// steps than the limit on overtaking allows.
func TestEnd(t *testing.T) {
	t.Parallel()
	in := measured(0)
	in.Limits = Limits{Tokens: 64, Rows: 64, Requests: 100, Pages: 1000, PageRows: 64}
	in.Objective.StepTime = time.Millisecond
	in.Requests = []Request{{Length: 2000, RowFrom: 1999}}
	var b Batch
	for step := range 2000 * (maxOvertaken + 1) {
		for len(in.Requests) < 4 { // short prompts keep arriving
			in.Requests = append(in.Requests, Request{Length: 40, RowFrom: 39})
		}
		Next(in, &b)
		for i := range in.Requests {
			in.Requests[i].Waited++
		}
		for _, p := range b.Parts {
			r := &in.Requests[p.Request]
			r.Done, r.Waited = r.Done+p.Tokens, 0
		}
		if in.Requests[0].Pending() == 0 {
			return
		}
		in.Requests = slices.DeleteFunc(in.Requests, func(r Request) bool { return r.Pending() == 0 })
		if step > 1000*maxOvertaken {
			t.Fatalf("the long prompt has %d tokens left after %d steps", in.Requests[0].Pending(), step)
		}
	}
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		waiting []Waiting
		idle    bool
		want    int
	}{
		{"nobody", nil, true, -1},
		{"the oldest", []Waiting{{}, {}}, false, 0},
		{"the more urgent", []Waiting{{Priority: 1}, {}}, false, 1},
		{"the client with less", []Waiting{{ClientLoad: 2}, {ClientLoad: 1}}, false, 1},
		{"its user with less", []Waiting{{UserLoad: 2}, {UserLoad: 1}}, false, 1},
		{"the client whose turn is longest ago", []Waiting{{}, {ClientSince: 1}}, false, 1},
		{"and its user", []Waiting{{ClientSince: 1}, {ClientSince: 1, UserSince: 1}}, false, 1},
		{"who waited long is as urgent", []Waiting{{Priority: 1, Waited: aging}, {}}, false, 0},
		{"but not more", []Waiting{{Waited: 3 * aging, ClientLoad: 1}, {}}, false, 1},
		{"who does not fit is not overtaken", []Waiting{{Sequences: 3}, {Sequences: 1}}, false, -1},
		{"nor for want of pages", []Waiting{{Pages: 11}}, false, -1},
		{"but begins where nothing runs", []Waiting{{Sequences: 3, Pages: 11}}, true, 0},
	} {
		if got := Admit(c.waiting, 2, 10, c.idle, 0); got != c.want {
			t.Errorf("%s: %d, expected %d", c.name, got, c.want)
		}
	}
}

func TestMakeWay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		live []Live
		want int
	}{
		{"the last of those with the most", []Live{{Load: 2}, {Load: 3}, {Load: 3}, {Load: 2}}, 2},
		{"nobody with as many as both then have", []Live{{Load: 1}, {Load: 2, WaitingLoad: 1}}, -1},
		{"nobody who cannot", []Live{{Load: 3, Fixed: true}, {Load: 2}}, 1},
		{"nobody who is more urgent", []Live{{Load: 3, Priority: -1}}, -1},
	} {
		if got := SuspendFor(c.live, &Waiting{Sequences: 1}); got != c.want {
			t.Errorf("%s: %d, expected %d", c.name, got, c.want)
		}
	}
}

func TestVictim(t *testing.T) {
	t.Parallel()
	list := []Request{{Pages: 1}, {Pages: 1, Priority: 1}, {Pages: 2, Priority: 1}, {Priority: 2}, {Pages: 1, Priority: 2, Blocked: true}}
	if got := Victim(list, 0); got != 2 {
		t.Errorf("%d, expected the youngest of the least urgent with pages", got)
	}
	if got := Victim(list[:1], 0); got != -1 {
		t.Errorf("%d, expected nobody", got)
	}
}
