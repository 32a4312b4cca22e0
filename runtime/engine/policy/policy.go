package policy

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A Request is the state of a live sequence.
type Request struct {
	Length  int // tokens so far: the prompt and the generated ones
	Done    int // tokens that are computed: their KV cache rows exist
	Rows    int // whole sequences: number of output rows
	RowFrom int // other sequences: output rows are due for tokens from this index on

	Pages       int // KV cache pages that it holds
	Cached      int // rows that it can reuse from the prefix cache; 0 if it holds pages
	CachedPages int // pages of the Cached rows that only the prefix cache holds
	CachedCells int // the same for cells of fixed-size states

	Priority int  // smaller is more urgent
	Decoding bool // its prompt is computed
	Blocked  bool // it is in a step in flight, or waits for its encoder
	Waited   int  // steps since it was last in one
	Draft    int  // drafted tokens to verify after its last token
}

// Pending returns the number of tokens still to compute.
func (r *Request) Pending() int { return r.Length - r.Done - r.Cached }

// A Part is what one request computes in a step: its next Tokens tokens, the last Rows
// of which produce output rows, and Draft drafted tokens, each of which produces an
// output row.
type Part struct {
	Request int // index in Input.Requests
	Tokens  int
	Rows    int
	Draft   int
	Pages   int // KV cache pages that it holds after the step
}

// Limits are the limits of a step.
type Limits struct {
	Tokens   int
	Rows     int  // output rows
	Requests int  // of a pipeline with several steps in flight: the part of one step
	Pages    int  // free KV cache pages, including those that only the prefix cache holds
	PageRows int  // rows per page
	Cells    int  // free cells of fixed-size states, including those that only the prefix cache holds
	CellRows int  // rows per cell; 0: the model has none
	Whole    bool // sequences are computed in one step each (encoders)
}

// An Objective is the objective of a batch.
type Objective struct {
	// StepTime is the target latency of a step with prompts; 0: steps are as large as
	// Limits allow.
	StepTime time.Duration
	Without  Rule // rules that are disabled, for ablations
}

// An Input is the input of Next.
type Input struct {
	Requests  []Request // oldest first
	Times     *StepTimes
	Limits    Limits
	Objective Objective
}

// A Batch is the result of Next.
type Batch struct {
	Parts    []Part
	Short    int  // the first request that found no KV cache page or cell; -1: none
	NoDrafts bool // the step has no time for drafts

	order   []int // scratch
	barrier bool  // a prefill barrier applies
}

// Next decides the next step's batch and stores it in out. Decoding requests come
// first, so that a prompt delays them by at most one step. Prompt chunks fill the rest
// of the step's time budget; prompts of a burst end their prefill together. If
// out.Parts is empty, nothing can be computed; then out.Short is not -1 if pages or
// cells are missing.
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

// decoding lists the requests with one pending token, the most urgent first.
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

// prompts lists the requests with several pending tokens: those that were overtaken too
// often first, then by priority, then by the number of pending tokens.
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

// schedule adds requests to the batch in the order of list, up to the limits left.
func (in *Input) schedule(out *Batch, left *Limits, list []int) {
	for _, i := range list {
		if left.Tokens == 0 || left.Requests == 0 {
			return
		}
		r := &in.Requests[i]
		n, rows := left.fit(r)
		if n == r.Pending() && out.barrier && in.behindBarrier(r) { // the last token waits behind the barrier
			n, rows = n-1, max(0, rows-1)
		}
		if n == 0 {
			continue
		}
		pages := max(r.Pages, left.pagesFor(r.Done+r.Cached+n))
		taken := pages - r.Pages - r.Cached/left.PageRows + r.CachedPages
		cells := left.newCells(r, n)
		if taken > left.Pages || cells > left.Cells {
			if out.Short < 0 {
				out.Short = i
			}
			continue
		}
		out.Parts = append(out.Parts, Part{Request: i, Tokens: n, Rows: rows, Pages: pages})
		left.Tokens -= n
		left.Rows -= rows
		left.Pages -= taken
		left.Cells -= cells
		left.Requests--
	}
}

// pagesFor returns the number of pages that hold the given number of rows.
func (l *Limits) pagesFor(rows int) int { return (rows + l.PageRows - 1) / l.PageRows }

// newCells returns how many free cells a request needs for its next n tokens: one, unless
// they lie in the cell that it holds. Cells before that of the last token are not kept.
func (l *Limits) newCells(r *Request, n int) int {
	if l.CellRows == 0 {
		return 0
	}
	if held := (r.Done + r.Cached + l.CellRows - 1) / l.CellRows; r.Done+r.Cached+n > held*l.CellRows {
		return r.CachedCells + 1
	}
	return r.CachedCells
}

// fit returns how many tokens of a request the step has room for, and how many of them
// produce output rows.
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

// Victim returns the index of the request to preempt for another one that found no
// page, or -1. It is the least urgent one that holds pages, the youngest among equals.
// Its tokens are computed again later, with the same results.
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
