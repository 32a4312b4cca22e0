//go:build unix

package engine

import (
	"sync"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// A headBatch batches the runs of an autoregressive draft head (Hydra): one run
// computes one token for every drafter that waits.
type headBatch struct {
	rows     int       // rows of hidden states that the last step computed
	states   []float32 // copy of these rows, because head runs overwrite them; empty: not copied yet
	drafting int       // drafters of DraftBatch that may still request a run
	waiting  []*headRequest
	ready    sync.Cond // signaled when waiting requests are done
}

// A headRequest asks for one token's row from the next run of the head.
type headRequest struct {
	step   *device.Step
	state  []float32
	token  int32
	result []float32 // the buffer of the row; nil after a failed run
	done   bool

	// Of a draft layer only.
	of    *Result
	path  []int // accepted nodes of the result's draft
	ahead int   // rows after those of verified tokens, this one included; 0: the verified ones
}

// begin records how many rows of hidden states a step computed.
func (c *headBatch) begin(results []Result) {
	c.rows, c.states = 0, c.states[:0]
	for i := range results {
		c.rows = max(c.rows, results[i].at+results[i].Rows+results[i].Drafted)
	}
}

// BatchesDrafts reports whether drafters should run through DraftBatch, because the
// model's draft head can compute the tokens of several sequences in one run. Otherwise
// each drafter may run by itself.
func (e *Engine) BatchesDrafts() bool { return e.heads.chained }

// DraftBatch drafts for several sequences of a step concurrently. Each function calls
// Result.Draft for one sequence, or for several in succession; no two functions draft
// for the same sequence. Each run of an autoregressive draft head serves all functions
// that have not finished.
func (e *Engine) DraftBatch(drafts []func()) {
	h := &e.heads
	h.mu.Lock()
	h.batch.drafting = len(drafts)
	h.mu.Unlock()
	var wg sync.WaitGroup
	for _, draft := range drafts {
		wg.Go(func() { e.draftOne(draft) })
	}
	wg.Wait()
}

// draftOne runs one function of DraftBatch; later head runs do not wait for it.
func (e *Engine) draftOne(draft func()) {
	defer func() {
		h := &e.heads
		h.mu.Lock()
		defer h.mu.Unlock()
		h.batch.drafting = max(0, h.batch.drafting-1)
		e.runPendingHeads()
	}()
	draft()
}

// chainOf returns the function that runs the model's autoregressive draft head for a
// result of which the nodes on path were accepted. A nil state stands for the hidden
// state of the last accepted token.
func (r Result) chainOf(path []int) speculate.ChainRun {
	if r.e.heads.cached {
		return r.cachedChain(path)
	}
	e, row := r.e, r.at+r.Rows-1
	if len(path) > 0 {
		row += 1 + path[len(path)-1]
	}
	h := &e.heads
	cols := e.graph.Outputs[h.hidden].Cols
	h.mu.Lock()
	if len(h.batch.states) == 0 { // head runs overwrite the hidden states
		h.batch.states = append(h.batch.states, r.step.Out[h.hidden][:h.batch.rows*cols]...)
	}
	h.mu.Unlock()
	return func(dst, state []float32, token int32) []float32 {
		if state == nil {
			state = h.batch.states[row*cols:][:cols]
		}
		q := &headRequest{step: r.step, state: state, token: token, result: dst}
		return e.awaitHead(q)
	}
}

// awaitHead queues a request and waits until a run of the head has served it.
func (e *Engine) awaitHead(q *headRequest) []float32 {
	h := &e.heads
	h.mu.Lock()
	defer h.mu.Unlock()
	h.batch.waiting = append(h.batch.waiting, q)
	for e.runPendingHeads(); !q.done; {
		h.batch.ready.Wait()
	}
	return q.result
}

// runPendingHeads runs the head for the waiting requests once every drafter of
// DraftBatch waits, or as many as one run can serve.
func (e *Engine) runPendingHeads() {
	h := &e.heads
	list := h.batch.waiting
	if len(list) == 0 || len(list) < min(h.batch.drafting, e.opt.MaxOutRows, e.opt.MaxTokens) {
		return
	}
	if h.cached {
		e.runDraftRequests(list)
	} else {
		e.runHeadRequests(list)
	}
	h.batch.waiting = list[:0]
	h.batch.ready.Broadcast()
}

// runDraftRequests computes one row of a draft layer for each request.
func (e *Engine) runDraftRequests(list []*headRequest) {
	var runs []draftRun
	for _, q := range list {
		q.done = true
		if run, ok := q.draftRun(); ok {
			runs = append(runs, run)
		} else {
			q.result = nil
		}
	}
	if e.runDraft(list[0].step, runs) != nil {
		for _, q := range list {
			q.result = nil // the next step returns the error
		}
	}
}

// runHeadRequests computes one row of an autoregressive head for each request.
func (e *Engine) runHeadRequests(list []*headRequest) {
	h := &e.heads
	c, o := list[0].step, e.graph.Outputs[h.output]
	cols := e.graph.Outputs[h.hidden].Cols
	blank(c, len(list))
	c.InPlace = false
	for i, q := range list {
		copy(c.Out[h.hidden][i*cols:], q.state)
		c.ID[i], c.OutRow[i] = q.token, int32(i)
	}
	err := e.timeHeads(c, len(list), len(list))
	for i, q := range list {
		q.done = true
		if q.result = append(q.result[:0], c.Out[h.output][i*o.Cols:][:o.Used]...); err != nil {
			q.result = nil // the next step returns the error
		}
	}
}
