package policy

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A Request is the state of a live sequence.
type Request struct {
	Length  int // tokens so far: the prompt, and those generated
	Done    int // of them, computed: their KV-cache rows exist
	Rows    int // whole sequences: output rows that it wants
	RowFrom int // else: output rows are still due for tokens from this one on

	Pages       int // KV-cache pages that it holds
	Cached      int // rows that it could reuse from the prefix cache; it holds no pages then
	CachedPages int // of their pages, those that only the prefix cache holds

	Priority int  // smaller is more urgent
	Decoding bool // its prompt has been computed: a client waits for its next token
	Blocked  bool // it is in a step under way, or waits for its encoder
	Waited   int  // steps since it was last in one
	Draft    int  // drafted tokens that could be verified behind its last one
}

// Pending is how many of its tokens are still to be computed.
func (r *Request) Pending() int { return r.Length - r.Done - r.Cached }

// A Part is what one request computes in a step: its next Tokens tokens, of
// which the last Rows give output rows, and behind them Draft drafted tokens,
// which all give output rows.
type Part struct {
	Request int // index in Input.Requests
	Tokens  int
	Rows    int
	Draft   int
	Pages   int // KV-cache pages that it holds then
}

// Limits are what a step can hold.
type Limits struct {
	Tokens   int
	Rows     int  // output rows
	Requests int  // of a pipeline with several steps under way: the share of one of them
	Pages    int  // KV-cache pages that are free, those only the prefix cache holds among them
	PageRows int  // rows of a page
	Whole    bool // sequences are computed in one step each (encoders)
}

// An Objective is what a batch is to achieve.
type Objective struct {
	// StepTime is the latency that a step with prompts aims at; 0: steps are as
	// large as Limits allow.
	StepTime time.Duration
	Without  Rule // rules that are switched off, for ablations
}

// An Input is all that Next decides by.
type Input struct {
	Requests  []Request // oldest first
	Times     *StepTimes
	Limits    Limits
	Objective Objective
}

// A Batch is what a step computes.
type Batch struct {
	Parts    []Part
	Short    int  // the first request that found no KV-cache page; -1: none
	NoDrafts bool // a step has no time for drafts

	order   []int // scratch
	barrier bool  // requests wait for others' prompts
}

// Next decides the next step's batch, in place of what out held. Requests that
// generate come first, so that a prompt delays them by at most one step; then
// prompts, as many of their tokens as the step has time for. Those of a burst
// begin to generate together. No parts: nothing can be computed, for want of pages
// if out.Short is not -1.
func Next(in *Input, out *Batch) {
	out.Parts, out.Short, out.NoDrafts = out.Parts[:0], -1, false
	left := in.Limits
	out.barrier = in.barrier()
	in.schedule(out, &left, in.decoding(out))
	prompts := in.prompts(out)
	if !left.Whole {
		decoding := in.Limits.Tokens - left.Tokens
		most := in.draftLimit(decoding)
		out.NoDrafts = most == 0
		if len(prompts) > 0 {
			most = min(most, left.Tokens/2)
		}
		in.drafts(out, &left, most)
		left.Tokens = min(left.Tokens, in.promptBudget(in.Limits.Tokens-left.Tokens))
	}
	in.schedule(out, &left, prompts)
}

// decoding lists the requests with one token to compute, the most urgent first.
func (in *Input) decoding(out *Batch) []int {
	out.order = out.order[:0]
	for i := range in.Requests {
		if r := &in.Requests[i]; r.Pending() == 1 && !r.Blocked {
			out.order = append(out.order, i)
		}
	}
	slices.SortStableFunc(out.order, func(a, b int) int {
		return cmp.Compare(in.Requests[a].Priority, in.Requests[b].Priority)
	})
	return out.order
}

// prompts lists the requests with more than one token to compute: first those
// that were overtaken too often, then the more urgent ones, then those with the
// fewest tokens left.
func (in *Input) prompts(out *Batch) []int {
	out.order = out.order[:0]
	for i := range in.Requests {
		if r := &in.Requests[i]; r.Pending() > 1 && !r.Blocked {
			out.order = append(out.order, i)
		}
	}
	limit := maxOvertaken
	if in.off(OvertakeLimit) {
		limit = math.MaxInt
	}
	slices.SortStableFunc(out.order, func(i, j int) int {
		a, b := &in.Requests[i], &in.Requests[j]
		if lateA, lateB := a.Waited >= limit, b.Waited >= limit; lateA != lateB {
			if lateA {
				return -1
			}
			return 1
		}
		if c := cmp.Compare(a.Priority, b.Priority); c != 0 || in.off(ShortestFirst) {
			return c
		}
		return cmp.Compare(a.Pending(), b.Pending())
	})
	return out.order
}

// schedule gives requests what is left of the step, in their order.
func (in *Input) schedule(out *Batch, left *Limits, list []int) {
	for _, i := range list {
		if left.Tokens == 0 || left.Requests == 0 {
			return
		}
		r := &in.Requests[i]
		n, rows := left.fit(r)
		if n == r.Pending() && out.barrier && in.behindBarrier(r) { // its last token comes later
			n, rows = n-1, max(0, rows-1)
		}
		if n == 0 {
			continue
		}
		pages := max(r.Pages, left.pagesFor(r.Done+r.Cached+n))
		taken := pages - r.Pages - r.Cached/left.PageRows + r.CachedPages
		if taken > left.Pages {
			if out.Short < 0 {
				out.Short = i
			}
			continue
		}
		out.Parts = append(out.Parts, Part{Request: i, Tokens: n, Rows: rows, Pages: pages})
		left.Tokens -= n
		left.Rows -= rows
		left.Pages -= taken
		left.Requests--
	}
}

func (l *Limits) pagesFor(rows int) int { return (rows + l.PageRows - 1) / l.PageRows }

// fit is how many tokens of a request, and how many output rows among them, a
// step has room for.
func (l *Limits) fit(r *Request) (n, rows int) {
	pending := r.Pending()
	n = min(pending, l.Tokens)
	if l.Whole {
		if n < pending || r.Rows > l.Rows {
			return 0, 0
		}
		return n, r.Rows
	}
	from := r.Done + r.Cached
	rows = max(0, from+n-max(r.RowFrom, from))
	if rows > l.Rows {
		n -= rows - l.Rows
		rows = l.Rows
	}
	return max(n, 0), rows
}

// Victim is the request that gives its pages up for another one, which found
// none: the least urgent, among equals the youngest that holds some; -1: there
// is none. Its tokens are computed again when there is room, with the same
// results.
func Victim(requests []Request, needy int) int {
	victim := -1
	for i := range requests {
		r := &requests[i]
		if i != needy && !r.Blocked && r.Pages > 0 && (victim < 0 || r.Priority >= requests[victim].Priority) {
			victim = i
		}
	}
	return victim
}
