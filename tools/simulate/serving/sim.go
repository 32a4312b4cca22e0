package main

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/iflowc/iflowc/runtime/engine/policy"
)

// The simulated service: iflowc serve with its defaults.
const (
	stepTokens = 512
	stepRows   = 64
	pageRows   = 64
	stepTime   = 11 * time.Millisecond
	mostDraft  = 16 // maximum draft tokens
)

// A live request.
type live struct {
	*Request
	index   int
	arrived time.Duration
	step    int64 // its last step

	length   int // current tokens
	done     int // computed
	full     int // number of full pages
	pages    int
	decoding bool
	draft    int
	last     time.Duration // time of the last token
}

// key returns the key of a page of a request's text.
func (q *live) key(i int) pageKey {
	if (i+1)*pageRows <= q.Shared {
		return pageKey{-q.Stem, i}
	}
	return pageKey{q.Text, i}
}

// A simulation is a run.
type simulation struct {
	load    *Load
	policy  Policy
	latency *Latency
	rng     *rand.Rand
	trace   []Request
	follow  [][]int // requests that arrive after the end of each request
	now     time.Duration
	steps   int64

	coming  []live // sorted by arrival
	waiting []*live
	live    []*live
	cache   *pageCache

	input    policy.Input
	batch    policy.Batch
	times    policy.StepTimes
	others   int // tokens of the last step, without drafts
	drafting int // requests with a draft in the last step

	outcome []outcome
	noted   note
	watch   func(TimelineStep) // called for every step; may be nil
}

// A note accumulates totals of a run's steps.
type note struct{ Steps, Tokens, Preempted, Drafted, Accepted int }

// An outcome holds the latencies of a request.
type outcome struct {
	came       time.Duration
	first, end time.Duration // since its arrival
	gaps       []time.Duration
	tokens     int
}

// Run replays a load's traffic for a seed.
func Run(load Load, p Policy, latency *Latency, seed uint64) Result {
	s := newSimulation(load, p, latency, seed)
	s.all()
	return s.result()
}

// newSimulation returns a simulation in its initial state.
func newSimulation(load Load, p Policy, latency *Latency, seed uint64) *simulation {
	s := &simulation{
		load: &load, policy: p, latency: latency, rng: rand.New(rand.NewPCG(seed, 2)),
		trace: load.Requests(rand.New(rand.NewPCG(seed, 1))), cache: newPageCache(load.Pages),
	}
	s.outcome, s.follow = make([]outcome, len(s.trace)), make([][]int, len(s.trace))
	for i, q := range s.trace {
		if q.After == 0 {
			s.arrive(i, q.At)
		} else {
			s.follow[q.After-1] = append(s.follow[q.After-1], i)
		}
	}
	return s
}

// all runs every step.
func (s *simulation) all() {
	for len(s.coming)+len(s.waiting)+len(s.live) > 0 {
		s.step()
	}
}

// arrive adds a request that arrives at a given time.
func (s *simulation) arrive(i int, at time.Duration) {
	s.outcome[i].came = at
	q := live{Request: &s.trace[i], index: i, arrived: at, length: s.trace[i].Prompt}
	pos, _ := slices.BinarySearchFunc(s.coming, at, func(l live, at time.Duration) int {
		if l.arrived <= at { // after the requests that arrive at the same time
			return -1
		}
		return 1
	})
	s.coming = slices.Insert(s.coming, pos, q)
}

// receive moves the requests that have arrived to the queue.
func (s *simulation) receive() {
	for len(s.coming) > 0 && s.coming[0].arrived <= s.now {
		q := s.coming[0]
		s.coming = s.coming[1:]
		s.waiting = append(s.waiting, &q)
	}
}

// step is a round of the scheduler's loop.
func (s *simulation) step() {
	s.receive()
	if len(s.live) == 0 {
		s.await()
	}
	s.admit()
	for s.plan(); len(s.batch.Parts) == 0; s.plan() {
		victim := policy.Victim(s.input.Requests, s.batch.Short)
		if s.batch.Short < 0 || victim < 0 {
			panic("bug: live requests, but the policy plans nothing")
		}
		s.release(s.live[victim])
		s.live[victim].done, s.live[victim].draft = 0, 0
		s.noted.Preempted++
	}
	s.run()
}

// await advances the time until there is work.
func (s *simulation) await() {
	if len(s.waiting) == 0 {
		s.now = s.coming[0].arrived
		s.receive()
	}
}

// admit admits queued requests while sequences and pages are available.
func (s *simulation) admit() {
	sequences, pages := s.load.Sequences-len(s.live), s.cache.free()-len(s.live)
	for len(s.waiting) > 0 {
		load := map[int]int{}
		for _, q := range s.live {
			load[q.Client]++
		}
		list := make([]policy.Waiting, len(s.waiting))
		for i, q := range s.waiting {
			list[i] = policy.Waiting{Priority: q.Priority, Waited: s.now - q.arrived, ClientLoad: load[q.Client], Sequences: 1, Pages: pagesFor(q.Prompt) + 1}
		}
		at := s.policy.Admit(list, sequences, pages, len(s.live) == 0)
		if at < 0 {
			return
		}
		q := s.waiting[at]
		s.waiting = slices.Delete(s.waiting, at, at+1)
		q.step = s.steps
		s.live = append(s.live, q)
		sequences--
		pages -= pagesFor(q.Prompt) + 1
	}
}

func pagesFor(rows int) int { return (rows + pageRows - 1) / pageRows }

// plan asks the policy for the next batch.
func (s *simulation) plan() {
	in := &s.input
	in.Requests = in.Requests[:0]
	for _, q := range s.live {
		r := policy.Request{
			Length: q.length, Done: q.done, RowFrom: q.length - 1, Pages: q.pages, Priority: q.Priority,
			Decoding: q.decoding, Waited: int(s.steps - q.step), Draft: q.draft,
		}
		if q.done == 0 {
			r.Cached, r.CachedPages = s.cached(q)
		}
		in.Requests = append(in.Requests, r)
	}
	in.Times = &s.times
	in.Limits = policy.Limits{Tokens: stepTokens, Rows: stepRows, Requests: len(s.live), Pages: s.cache.free(), PageRows: pageRows}
	in.Objective.StepTime = stepTime
	s.policy.Next(in, &s.batch)
}

// cached returns the rows of a request in the prefix cache, and how many of their pages have
// no users.
func (s *simulation) cached(q *live) (rows, unused int) {
	for ; rows+pageRows <= q.length-1; rows += pageRows {
		p := s.cache.full[q.key(rows/pageRows)]
		if p == nil {
			break
		}
		if p.users == 0 {
			unused++
		}
	}
	return rows, unused
}

// run computes the batch and delivers the tokens.
func (s *simulation) run() {
	tokens := 0
	s.others, s.drafting = 0, 0
	var seen TimelineStep
	if s.watch != nil {
		seen = s.note()
	}
	for _, p := range s.batch.Parts { // use cached pages first, so that none is evicted
		q := s.live[p.Request]
		if q.done == 0 {
			n, _ := s.cached(q)
			for i := range n / pageRows {
				s.cache.use(s.cache.full[q.key(i)])
			}
			q.done, q.full, q.pages = n, n/pageRows, n/pageRows
		}
	}
	for _, p := range s.batch.Parts {
		q := s.live[p.Request]
		s.cache.take(p.Pages - q.pages)
		q.pages = p.Pages
		tokens += p.Tokens + p.Draft
		s.others += p.Tokens
		if p.Draft > 0 {
			s.drafting++
		}
	}
	took := s.latency.Draw(s.rng, tokens)
	if s.load.Slow > 0 {
		took = time.Duration(float64(took) * s.load.Slow)
	}
	if s.watch != nil {
		seen.Took = float64(took.Microseconds()) / 1e3
		seen.Kept = s.cache.unused.Len()
		seen.Used = s.cache.private + len(s.cache.full) - seen.Kept
		s.watch(seen)
	}
	s.times.Measure(tokens, took)
	s.now += took + seconds(s.latency.Gap)
	s.steps++
	s.noted.Steps++
	s.noted.Tokens += tokens
	for _, p := range s.batch.Parts {
		s.take(s.live[p.Request], p)
	}
	s.live = slices.DeleteFunc(s.live, func(q *live) bool { return q.length == 0 })
}

// take advances a request by the tokens of a step.
func (s *simulation) take(q *live, p policy.Part) {
	q.done += p.Tokens
	q.step = s.steps
	if q.done == q.length {
		accepted := 0
		for accepted < p.Draft && s.rng.Float64() < s.load.Accept {
			accepted++
		}
		accepted = min(accepted, q.Output-s.outcome[q.index].tokens-1)
		s.noted.Drafted, s.noted.Accepted = s.noted.Drafted+p.Draft, s.noted.Accepted+accepted
		q.done, q.length = q.done+accepted, q.length+accepted+1
		s.deliver(q, accepted+1)
	}
	for ; q.full < q.done/pageRows; q.full++ {
		s.cache.fill(q.key(q.full))
	}
	if need := pagesFor(max(q.length, q.done+1)); q.pages > need { // only rejected drafts had rows there
		s.cache.private -= q.pages - need
		q.pages = need
	}
	if s.outcome[q.index].tokens == q.Output {
		s.finish(q)
		return
	}
	if q.draft = 0; q.decoding && s.load.Accept > 0 {
		q.draft = s.propose(q)
	}
}

// deliver records that tokens reached the client.
func (s *simulation) deliver(q *live, n int) {
	o := &s.outcome[q.index]
	if o.tokens == 0 {
		o.first = s.now - q.arrived
	} else {
		o.gaps = append(o.gaps, s.now-q.last)
	}
	o.tokens += n
	q.last, q.decoding = s.now, true
}

// finish ends a request and adds the requests that follow it.
func (s *simulation) finish(q *live) {
	s.outcome[q.index].end = s.now - q.arrived
	s.release(q)
	q.length = 0 // removes it from the live requests
	for _, i := range s.follow[q.index] {
		s.arrive(i, s.now+s.trace[i].At)
	}
}

// release releases a request's pages.
func (s *simulation) release(q *live) {
	for i := q.full - 1; i >= 0; i-- { // from the end, so that the end of a text is evicted first
		s.cache.drop(q.key(i))
	}
	s.cache.private -= q.pages - q.full
	q.pages, q.full = 0, 0
}

// result summarizes the run.
func (s *simulation) result() Result {
	r := Result{Load: s.load.Name, Policy: s.policy.Name, Seconds: s.now.Seconds(), Steps: s.noted.Steps, Preempted: s.noted.Preempted}
	r.Summary = s.sum(func(*Request) bool { return true })
	classes := map[string]bool{}
	for i := range s.trace {
		if c := s.trace[i].Class; c != "" && !classes[c] {
			classes[c] = true
			r.Classes = append(r.Classes, Class{c, s.sum(func(q *Request) bool { return q.Class == c })})
		}
	}
	slices.SortFunc(r.Classes, func(a, b Class) int { return cmp.Compare(a.Name, b.Name) })
	r.Fairness = s.fairness()
	return r
}
