//go:build unix

package engine_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine"
)

// run computes a query's prompt. It returns the last result's row and the number of
// tokens computed.
func run(t *testing.T, e *engine.Engine, q engine.Query) (engine.ID, []float32, engine.Result, int) {
	t.Helper()
	id, err := e.AddQuery(q)
	if err != nil {
		t.Fatal(err)
	}
	tokens := 0
	for {
		results, err := e.Infer(t.Context())
		if err != nil || len(results) != 1 {
			t.Fatal(results, err)
		}
		tokens += results[0].Tokens()
		if results[0].Ready {
			return id, slices.Clone(results[0].Row(0, 0)), results[0], tokens
		}
	}
}

// TestPrefixReuse checks that full pages of a prefix are computed once.
func TestPrefixReuse(t *testing.T) {
	t.Parallel()
	e := open(t, fake(t), engine.Options{MaxTokens: 50, MaxSeqs: 2, Context: 400, Pages: 14, Prefix: true})
	r := rand.New(rand.NewPCG(3, 3))
	p := prompt(r, 200)
	id, row, _, n := run(t, e, engine.Query{Tokens: p})
	if n != 200 {
		t.Fatalf("the first computes %d tokens", n)
	}
	other := append(slices.Clone(p[:130]), prompt(r, 20)...)
	for _, c := range []struct {
		tokens   []int32
		last     int
		computed int
	}{{p, 1, 200 - 192}, {other, 1, 150 - 128}, {p[:192], 1, 192 - 128}, {p[:193], 1, 1}, {p, 100, 200 - 64}, {p, -1, 200}, {p[1:], 1, 199}} {
		id, got, res, n := run(t, e, engine.Query{Tokens: c.tokens, Last: c.last})
		want := devicetest.Logits(c.tokens, salt)
		if c.last == 1 && !slices.Equal(got, want) {
			t.Errorf("%d tokens: the row differs", len(c.tokens))
		}
		if n != c.computed || res.Cached != len(c.tokens)-c.computed {
			t.Errorf("%d tokens, last %d: computed %d, cached %d; expected %d", len(c.tokens), c.last, n, res.Cached, c.computed)
		}
		e.Remove(id)
	}
	e.Remove(id)
	if s := e.Stats(); s.Used != 0 || s.Kept == 0 {
		t.Errorf("after all are gone: %+v", s)
	}
	// Other texts evict it; then it is computed again.
	for range 10 {
		id, _, _, _ := run(t, e, engine.Query{Tokens: prompt(r, 390)})
		e.Remove(id)
	}
	if _, again, _, n := run(t, e, engine.Query{Tokens: p}); n != 200 || !slices.Equal(again, row) {
		t.Errorf("after eviction: %d tokens computed", n)
	}
}

// TestSameAtOnce runs two equal prompts concurrently: they end with the same full
// pages.
func TestSameAtOnce(t *testing.T) {
	t.Parallel()
	e := open(t, fake(t), engine.Options{MaxSeqs: 2, Context: 200, Pages: 8, Prefix: true})
	p := prompt(rand.New(rand.NewPCG(4, 4)), 150)
	for range 2 {
		if _, err := e.AddQuery(engine.Query{Tokens: p}); err != nil {
			t.Fatal(err)
		}
	}
	results, err := e.Infer(t.Context())
	if err != nil || len(results) != 2 {
		t.Fatal(results, err)
	}
	if s := e.Stats(); s.Used != 4 {
		t.Errorf("%d pages used, expected 2 shared and 2 last ones", s.Used)
	}
	for _, r := range results {
		e.Remove(r.ID)
	}
	if s := e.Stats(); s.Used != 0 || s.Kept != 2 {
		t.Errorf("%+v", s)
	}
}

// TestServing is TestRandomArrivals with the features of serving: prefix caching,
// priorities, forks, cancellations and a step time.
func TestServing(t *testing.T) {
	t.Parallel()
	m := fake(t)
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 99))
		opt := engine.Options{
			MaxTokens: 1 + r.IntN(60), MaxSeqs: 1 + r.IntN(6), MaxOutRows: 1 + r.IntN(4), Pages: 5 + r.IntN(8), Context: 300,
			Prefix: r.IntN(4) > 0, StepTime: []time.Duration{0, time.Microsecond, time.Hour}[r.IntN(3)],
		}
		e := open(t, m, opt)
		stems := [][]int32{prompt(r, 70), prompt(r, 140), prompt(r, 10)}
		live, finished := map[engine.ID]*served{}, 0
		for finished < 25 {
			for r.IntN(3) > 0 {
				q := &served{tokens: append(slices.Clone(stems[r.IntN(len(stems))]), prompt(r, r.IntN(60))...), n: 1 + r.IntN(60)}
				id, err := e.AddQuery(engine.Query{Tokens: q.tokens, Priority: r.IntN(3)})
				if errors.Is(err, engine.ErrBusy) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				live[id] = q
			}
			results, err := e.Infer(t.Context())
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for _, res := range results {
				if serveOne(t, e, r, res, live) {
					finished++
				}
			}
		}
		for id := range live {
			e.Remove(id)
		}
		if s := e.Stats(); s.Used != 0 {
			t.Errorf("seed %d: %d pages are lost", seed, s.Used)
		}
	}
}

// A served query has its tokens so far and the number still to come.
type served struct {
	tokens []int32
	n      int
}

// serveOne checks a result's row and continues its query: it ends, forks or cancels it,
// or commits the greedy token.
func serveOne(t *testing.T, e *engine.Engine, r *rand.Rand, res engine.Result, live map[engine.ID]*served) (finished bool) {
	q := live[res.ID]
	if !res.Ready {
		if r.IntN(30) == 0 { // the client cancels
			e.Remove(res.ID)
			delete(live, res.ID)
		}
		return false
	}
	if !slices.Equal(res.Row(0, 0), devicetest.Logits(q.tokens, salt)) {
		t.Fatalf("%+v: the row after %d tokens differs", e.Options(), len(q.tokens))
	}
	if q.n--; q.n == 0 || r.IntN(40) == 0 {
		e.Remove(res.ID)
		delete(live, res.ID)
		return true
	}
	if r.IntN(10) == 0 {
		if id, err := e.Fork(res.ID); err == nil {
			live[id] = &served{append(slices.Clone(q.tokens), 9), q.n}
			if err := e.Commit(id, 9); err != nil {
				t.Fatal(err)
			}
		}
	}
	token := argmax(res.Row(0, 0))
	q.tokens = append(slices.Clone(q.tokens), token)
	if err := e.Commit(res.ID, token); err != nil {
		t.Fatal(err)
	}
	return false
}

// TestNoLeak adds and removes 100,000 queries at random times.
func TestNoLeak(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 6))
	e := open(t, fake(t), engine.Options{MaxTokens: 64, MaxSeqs: 12, Context: 256, Pages: 24, Prefix: true})
	stem := prompt(r, 100)
	var live []engine.ID
	for range 100_000 {
		tokens := stem[:1+r.IntN(100)]
		if r.IntN(2) == 0 {
			tokens = append(slices.Clone(tokens), prompt(r, 1+r.IntN(100))...)
		}
		id, err := e.AddQuery(engine.Query{Tokens: tokens, Priority: r.IntN(2)})
		if err == nil {
			live = append(live, id)
		} else if !errors.Is(err, engine.ErrBusy) {
			t.Fatal(err)
		}
		if r.IntN(8) == 0 {
			results, err := e.Infer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, res := range results {
				if res.Ready {
					if r.IntN(3) == 0 {
						if f, err := e.Fork(res.ID); err == nil {
							live = append(live, f)
						}
					}
					if err := e.Commit(res.ID, 9); err != nil && !errors.Is(err, engine.ErrFull) {
						t.Fatal(err)
					}
				}
			}
		}
		for len(live) > 0 && r.IntN(2) == 0 {
			at := r.IntN(len(live))
			e.Remove(live[at])
			live = slices.Delete(live, at, at+1)
		}
	}
	for _, id := range live {
		e.Remove(id)
	}
	if s := e.Stats(); s.Used != 0 || e.Len() != 0 || e.Unused() != 24 {
		t.Errorf("left over: %+v", s)
	}
}

// TestShortFirst adds a short prompt during the prefill of a long one: it is ready in
// the next step, and the long one still ends.
func TestShortFirst(t *testing.T) {
	t.Parallel()
	e := open(t, fake(t), engine.Options{MaxTokens: 20, MaxSeqs: 3})
	r := rand.New(rand.NewPCG(7, 7))
	long, err := e.AddQuery(engine.Query{Tokens: prompt(r, 400)})
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for done := false; !done; steps++ {
		short, err := e.AddQuery(engine.Query{Tokens: prompt(r, 20)})
		if err != nil {
			t.Fatal(err)
		}
		results, err := e.Infer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range results {
			if res.ID == long && res.Ready {
				done = true
			} else if res.ID == short && !res.Ready {
				t.Error("the short one waits")
			}
		}
		e.Remove(short)
		if steps > 400 {
			t.Fatal("short prompts keep the long one waiting for ever")
		}
	}
}

// TestUrgent checks that a prompt of a smaller Priority comes first.
func TestUrgent(t *testing.T) {
	t.Parallel()
	e := open(t, fake(t), engine.Options{MaxTokens: 10, MaxSeqs: 2})
	r := rand.New(rand.NewPCG(8, 8))
	for _, q := range []engine.Query{{Tokens: prompt(r, 5), Priority: 1}, {Tokens: prompt(r, 20)}} {
		if _, err := e.AddQuery(q); err != nil {
			t.Fatal(err)
		}
	}
	results, err := e.Infer(t.Context())
	if err != nil || len(results) != 1 || results[0].Tokens() != 10 {
		t.Errorf("%v, %v: expected ten tokens of the urgent prompt alone", results, err)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	m := fake(t)
	mem, opt, err := engine.Plan(m, engine.Options{MaxSeqs: 3, Context: 100, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	if opt.Pages != 6 || mem.PageBytes != 512 || mem.KVCache != 6*512 || mem.Weights != 1024 || mem.Results != 4*(64*64+512*16) {
		t.Errorf("%+v %+v", mem, opt)
	}
	mem.Available = 1000
	if err := mem.Check(); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("more than available: %v", err)
	}
	if _, _, err := engine.Plan(m, engine.Options{Pages: 1 << 50, Threads: 1}); err == nil || !strings.Contains(err.Error(), "MB are missing") {
		t.Errorf("far too many pages: %v", err)
	}
}

// TestPlanContext: the context is lowered to what memory holds, unless it was asked for.
func TestPlanContext(t *testing.T) {
	t.Parallel()
	m := fake(t)
	whole := *m.Manifest
	whole.Context = 1 << 20
	m.Manifest = &whole
	dev := m.Device
	m.Device = withMemory{dev, 1 << 50}
	mem, opt, err := engine.Plan(m, engine.Options{Threads: 1})
	if err != nil || opt.Context != 1<<20 {
		t.Fatalf("%+v, %v", opt, err)
	}
	room := func(pages int64) int64 { return 5*((mem.Total()-mem.KVCache+pages*mem.PageBytes)/4) + 5 }
	for _, c := range []struct {
		pages       int64 // for which there is memory
		asked, most int
		want        int
		fails       bool
	}{{100, 0, 0, 6400, false}, {3, 0, 0, 2048, false}, {100, 0, 3, 192, false}, {100, 1 << 20, 0, 1 << 20, true}, {-1000, 0, 0, 2048, true}} {
		m.Device = withMemory{dev, max(room(c.pages), 1000)}
		_, opt, err := engine.Plan(m, engine.Options{Context: c.asked, Pages: c.most, Threads: 1})
		if opt.Context != c.want || (err != nil) != c.fails {
			t.Errorf("%+v: context %d, %v", c, opt.Context, err)
		}
	}
}

// withMemory is a device with so much free memory of its own.
type withMemory struct {
	device.Device
	free int64
}

func (d withMemory) FreeBytes() int64 { return d.free }
