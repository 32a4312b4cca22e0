//go:build unix

package engine

import (
	"sync"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// A chain brings drafters together that run the model's chained head: one run
// takes a token of each.
type chain struct {
	rows     int       // of the states that the step gave
	states   []float32 // these as they were; empty: not kept yet
	drafting int       // drafters at work together that may want a run
	waiting  []*turn
	ready    sync.Cond // turns were taken
}

// A turn is what one drafter wants of the next run.
type turn struct {
	step   *device.Step
	state  []float32
	token  int32
	result []float32 // in place of what it held; nil after a failure
	taken  bool
}

// begin notes how many states a step gave.
func (c *chain) begin(results []Result) {
	c.rows, c.states = 0, c.states[:0]
	for i := range results {
		c.rows = max(c.rows, results[i].at+results[i].Rows+results[i].Drafted)
	}
}

// DraftsTogether says whether what drafts runs once for all sequences that draft
// by Together; else each may draft by itself.
func (e *Engine) DraftsTogether() bool { return e.heads.chained }

// Together drafts for several sequences of a step at once, each waiting for the
// others' turns: each call is Result.Draft for one or, one after the other, for
// some that no other call drafts for. A chained head runs once for all that want
// it.
func (e *Engine) Together(drafts []func()) {
	h := &e.heads
	h.mu.Lock()
	h.chain.drafting = len(drafts)
	h.mu.Unlock()
	var wg sync.WaitGroup
	for _, draft := range drafts {
		wg.Go(func() { e.draftOne(draft) })
	}
	wg.Wait()
}

// draftOne makes one draft, after which nobody waits for it.
func (e *Engine) draftOne(draft func()) {
	defer func() {
		h := &e.heads
		h.mu.Lock()
		defer h.mu.Unlock()
		h.chain.drafting = max(0, h.chain.drafting-1)
		e.runTurns()
	}()
	draft()
}

// chainOf gives a drafter the model's chained head, behind a result whose draft
// was walked along a path.
func (r Result) chainOf(path []int) speculate.ChainRun {
	e, row := r.e, r.at+r.Rows-1
	if len(path) > 0 {
		row += 1 + path[len(path)-1]
	}
	h := &e.heads
	cols := e.graph.Outputs[h.hidden].Cols
	h.mu.Lock()
	if len(h.chain.states) == 0 { // runs will overwrite them
		h.chain.states = append(h.chain.states, r.step.Out[h.hidden][:h.chain.rows*cols]...)
	}
	h.mu.Unlock()
	return func(dst, state []float32, token int32) []float32 {
		if state == nil {
			state = h.chain.states[row*cols:][:cols]
		}
		t := &turn{step: r.step, state: state, token: token, result: dst}
		return e.takeTurn(t)
	}
}

// takeTurn waits until the head has run on a turn's state and token.
func (e *Engine) takeTurn(t *turn) []float32 {
	h := &e.heads
	h.mu.Lock()
	defer h.mu.Unlock()
	h.chain.waiting = append(h.chain.waiting, t)
	for e.runTurns(); !t.taken; {
		h.chain.ready.Wait()
	}
	return t.result
}

// runTurns runs the head for all that wait, once nobody is still thinking.
func (e *Engine) runTurns() {
	h := &e.heads
	list := h.chain.waiting
	if len(list) == 0 || len(list) < min(h.chain.drafting, e.opt.MaxOutRows, e.opt.MaxTokens) {
		return
	}
	c, o := list[0].step, e.graph.Outputs[h.output]
	cols := e.graph.Outputs[h.hidden].Cols
	blank(c, len(list))
	for i, t := range list {
		copy(c.Out[h.hidden][i*cols:], t.state)
		c.ID[i], c.OutRow[i] = t.token, int32(i)
	}
	err := e.timeHeads(c, len(list), len(list))
	for i, t := range list {
		t.taken = true
		if t.result = append(t.result[:0], c.Out[h.output][i*o.Cols:][:o.Used]...); err != nil {
			t.result = nil // the next step fails with it
		}
	}
	h.chain.waiting = list[:0]
	h.chain.ready.Broadcast()
}
