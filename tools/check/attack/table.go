//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

// An attack is a row of the table.
type attack struct {
	name    string
	sends   string                 // short description
	workers int                    // concurrent workers
	pause   time.Duration          // between two requests of a worker
	like    ordinary               // the ordinary load of equal size
	keyless bool                   // the service has no keys, so addresses identify clients
	tls     bool                   // over HTTPS, the client over HTTP/2
	expect  []int                  // statuses; nil: those of usual
	must    int                    // a status that must occur; 0: none
	bare    bool                   // a 400 may have no message, because the request was not HTTP
	check   func(s *service) error // run before the attack, on an idle service
	after   func(s *service) error // run after it
	flags   []string               // more flags of serve
	during  func(s *service) (stop func() error, err error)
	do      func(in info) act
}

// usual are the statuses that may answer an excessive request.
var usual = []int{200, 400, 413, 429}

func (a *attack) expected() []int {
	if a.expect == nil {
		return usual
	}
	return a.expect
}

// begin begins what happens beside the load; stop ends it.
func (a *attack) begin(s *service) (stop func() error, err error) {
	if a.during == nil {
		return func() error { return nil }, nil
	}
	return a.during(s)
}

func (a *attack) size() string {
	text := fmt.Sprintf("%d at once", a.workers)
	if a.pause > 0 {
		text += fmt.Sprintf(", %v apart", a.pause)
	}
	return text
}

// attacks are all of them.
func attacks() []attack {
	return slices.Concat(samplingAttacks(), choiceAttacks(), textAttacks(), grammarAttacks(), schemaAttacks(), shareAttacks(), cacheAttacks(),
		storeAttacks(), jsonAttacks(), listAttacks(), templateAttacks(), connectionAttacks(), bodyAttacks(), readerAttacks(), httpAttacks(), http2Attacks(), tlsAttacks(), clockAttacks())
}

// Ordinary loads of the usual sizes.
var (
	one      = ordinary{1, 128, 32}
	few      = ordinary{16, 128, 32}
	fewLong  = ordinary{16, 128, 512}
	fewAsk   = ordinary{16, 128, 1}
	fewRead  = ordinary{16, 2500, 1}
	oneRead  = ordinary{1, 2500, 1}
	many     = ordinary{64, 128, 32}
	manyAsk  = ordinary{64, 128, 1}
	crowd    = ordinary{128, 64, 128}
	fullHall = ordinary{200, 128, 128}
	longHall = ordinary{200, 1000, 128}
)

type obj = map[string]any

// scale converts a number of tokens for a context of 8,192 to another context.
func (in info) scale(n int) int {
	return min(n, max(n*in.Context/8192, in.Context/4))
}

// ids returns random tokens.
func (in info) ids(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = 16 + rand.IntN(max(in.Vocab-16, 1))
	}
	return list
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return data
}

const completions, conversations = "/v1/completions", "/v1/chat/completions"

// fixed always sends the same request.
func fixed(path string, body obj) request { return same(post(path, encode(body))) }

// fresh sends another prompt of this length each time, to defeat caches.
func (in info) fresh(tokens int, body obj) request {
	rest := encode(body)
	return func(*worker) []byte {
		prompt := encode(obj{"prompt": in.ids(tokens)})
		if len(body) > 0 {
			prompt = append(append(prompt[:len(prompt)-1], ','), rest[1:]...)
		}
		return post(completions, prompt)
	}
}

// act returns the ordinary load as an act.
func (l ordinary) act(in info) act {
	return ask(in.fresh(in.scale(l.prompt), obj{"max_tokens": in.scale(l.answer), "ignore_eos": true}))
}

// all runs the selected attacks and prints a row for each. If nothing but the
// client's times is wrong, three more rounds decide, each with an ordinary load
// of its own: beside the same load, medians of 4 s were 160 and 221 ms.
func (o *options) all() (failed int, err error) {
	bases := newBaselines(o)
	first, ran := true, 0
	for _, a := range attacks() {
		if !o.only.MatchString(a.name) {
			continue
		}
		r, err := o.one(bases, &a)
		if err == nil && len(r.Wrong) > 0 && (o.again || len(r.Wrong) == r.slow) {
			log.Printf("%s: %s; measured again", a.name, strings.Join(r.Wrong, "; "))
			more := *o
			more.rounds, more.fresh = 3*o.rounds, 0
			r, err = more.one(newBaselines(&more), &a)
		}
		if err != nil {
			return failed, fmt.Errorf("%s: %w", a.name, err)
		}
		ran++
		if len(r.Wrong) > 0 {
			failed++
		}
		if o.json {
			line(r)
			continue
		}
		if first {
			o.head(r)
			first = false
		}
		r.print()
	}
	if !o.json {
		fmt.Printf("%d attacks, %d failed\n", ran, failed)
	}
	return failed, nil
}

// one measures an attack and its ordinary load, interleaved.
func (o *options) one(bases *baselines, a *attack) (result, error) {
	var base, under phase
	last := -1
	for range o.rounds {
		at, p, err := bases.get(a)
		if err != nil {
			return result{}, err
		}
		if at != last {
			base.join(p)
			last = at
		}
		if p, err = o.measure(a); err != nil {
			return result{}, err
		}
		under.join(p)
	}
	return o.judge(a, &base, &under), nil
}

// join adds another round.
func (p *phase) join(q phase) {
	p.seen.add(q.seen)
	p.peak, p.most, p.health, p.cores = max(p.peak, q.peak), q.most, max(p.health, q.health), max(p.cores, q.cores)
	if p.count == nil {
		p.count, p.says = map[int]int{}, map[int]string{}
	}
	for status, n := range q.count {
		if p.count[status] == 0 {
			p.says[status] = q.says[status]
		}
		p.count[status] += n
	}
	p.wrong = append(p.wrong, q.wrong...)
}

// head explains the rows.
func (o *options) head(r result) {
	fmt.Printf("%.1f s an attack and round, %d rounds. The client asks for %d tokens after %d words, %v apart.\n", o.seconds, o.rounds, clientTokens, clientPrompt, clientPause)
	fmt.Printf("Allowed: median %g times (or %g ms), p99 %g times (or %g ms) of the same beside the ordinary load", o.p50, o.floor50, o.p99, o.floor99)
	if r.MostMB > 0 {
		fmt.Printf("; %.0f MB.\n", r.MostMB)
	} else {
		fmt.Printf("; serve prints no bound of its memory, so that is not judged.\n")
	}
	fmt.Printf("Service, client and attacker share this machine.\n\n%-24s %8s  %-26s %-26s %s\n", "attack", "peak MB", "p50 ms (ordinary)", "p99 ms (ordinary)", "verdict")
}

// print writes the row at once.
func (r *result) print() {
	verdict := "passed"
	if len(r.Wrong) > 0 {
		verdict = "FAILED: " + strings.Join(r.Wrong, "; ")
	}
	pair := func(a, b float64) string {
		if a == 0 || b == 0 {
			return fmt.Sprintf("%.1f (%.1f)", a, b)
		}
		return fmt.Sprintf("%.1f (%.1f) %.1f×", a, b, a/b)
	}
	fmt.Printf("%-24s %8.0f  %-26s %-26s %s [%s]\n", r.Attack, r.PeakMB, pair(r.Under.P50, r.Base.P50), pair(r.Under.P99, r.Base.P99), verdict, r.Statuses)
}

// baselines are recent measurements of ordinary loads; attacks of equal size
// share them.
type baselines struct {
	o    *options
	last map[string]baseline
	n    int
}

type baseline struct {
	phase
	n    int
	when time.Time
}

func newBaselines(o *options) *baselines { return &baselines{o: o, last: map[string]baseline{}} }

// get repeats a measurement that is too old, because a machine's speed drifts.
func (b *baselines) get(a *attack) (int, phase, error) {
	l := a.like
	key := fmt.Sprint(l, a.keyless, a.tls)
	if old, ok := b.last[key]; ok && time.Since(old.when) < b.o.fresh {
		return old.n, old.phase, nil
	}
	p, err := b.o.measure(&attack{keyless: a.keyless, tls: a.tls, workers: l.clients, do: l.act})
	if err != nil {
		return 0, p, err
	}
	b.n++
	b.last[key] = baseline{p, b.n, time.Now()}
	if len(p.wrong) > 0 || len(p.Failed) > 0 {
		fmt.Fprintf(os.Stderr, "attack: the ordinary load of %v itself: %v %v\n", l, p.wrong, p.Failed[:min(1, len(p.Failed))])
	}
	return b.n, p, nil
}
