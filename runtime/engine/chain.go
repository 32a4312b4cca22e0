//go:build unix

package engine

import "github.com/iflowc/iflowc/runtime/speculate"

// chain gives drafters of a result whose draft was walked along a path the
// model's chained head. Those of several results of a step take turns.
func (r Result) chain(path []int) speculate.ChainRun {
	row := r.at + r.Rows - 1
	if len(path) > 0 {
		row += 1 + path[len(path)-1]
	}
	return func(dst, state []float32, token int32) []float32 {
		return r.e.runChain(dst, row, state, token)
	}
}

// runChain runs the head on the states of a row of the step, or on one that is
// put in their place, and on a token. The result takes the place of dst, of
// which state may be a part.
func (e *Engine) runChain(dst []float32, row int, state []float32, token int32) []float32 {
	h, c := &e.heads, e.ctx
	h.mu.Lock()
	defer h.mu.Unlock()
	if state != nil {
		copy(c.Out[h.hidden][row*e.graph.Outputs[h.hidden].Cols:], state)
	}
	c.Want[0] = int32(row)
	rows := e.blank(1)
	c.ID[row] = token
	if e.timeHeads(rows, 1) != nil {
		return nil // the next step fails with it
	}
	return append(dst[:0], c.Out[h.output][:e.graph.Outputs[h.output].Used]...)
}
