//go:build unix

package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine/policy"
)

// headRows is the role of the rows that the heads' graph gives.
const headRows = "heads"

// heads run the graph "medusa" behind steps whose sequences have drafters that
// read its rows. It reads the hidden states that the step left.
type heads struct {
	entry   int     // the graph; valid where the model has one
	output  int     // the index of its result among the engine's outputs; 0: none
	seconds float64 // a run's time of late

	chained bool // run by drafters, on tokens that were picked behind the states
	hidden  int  // the index of the states among the outputs
	chain   chain

	mu sync.Mutex // of runs, and of seconds and chain
}

// findHeads adds the results of the heads' graph to those of the engine's graph,
// which it reads; nil: there is none.
func (e *Engine) findHeads(m *manifest.Manifest) *manifest.Graph {
	if m.Medusa == nil || e.graph.Name != "decode" {
		return nil
	}
	entry, err := findGraph(m, "medusa")
	if err != nil {
		return nil
	}
	g := m.Graphs[entry]
	if g.At != len(e.graph.Outputs) || len(g.Outputs) != 1 {
		return nil
	}
	out := g.Outputs[0]
	out.Rows = headRows
	e.heads.entry, e.heads.output = entry, g.At
	e.heads.chained, e.heads.hidden = m.Medusa.Chained, e.Output("hidden")
	e.heads.chain.ready.L = &e.heads.mu
	e.graph.Outputs = append(slices.Clone(e.graph.Outputs), out)
	return &g
}

// headsLater marks the one result of a step whose heads are outRows: only the row
// that is asked for is computed, when it is.
const headsLater = -2

// planHeads computes the heads of the last token and of the drafted ones of every
// result whose sequence has a drafter that reads them, all in one run; of a
// single one later, because then the drafter is alone and knows which row.
func (e *Engine) planHeads(results []Result) error {
	if e.heads.output == 0 {
		return nil
	}
	if e.heads.chained {
		e.heads.chain.begin(results)
		for i := range results {
			results[i].heads = headsLater
		}
		return nil
	}
	c := e.pipe.shown.step
	n, last := 0, -1
	for i := range results {
		r := &results[i]
		s := e.find(r.ID)
		if s == nil || !s.reads || !r.Ready || r.Rows == 0 {
			continue
		}
		r.heads, last = n, i
		for row := r.at + r.Rows - 1; row <= r.at+r.Rows-1+r.draft.Len(); row++ {
			c.OutRow[n] = int32(row)
			n++
		}
	}
	switch {
	case last < 0:
		return nil
	case n == 1+results[last].draft.Len():
		results[last].heads = headsLater
		return nil
	}
	return e.runHeads(c, n)
}

// runHeads computes the heads of the n rows in OutRow.
func (e *Engine) runHeads(c *device.Step, n int) error {
	e.heads.mu.Lock()
	defer e.heads.mu.Unlock()
	rows := int(slices.Max(c.OutRow[:n])) + 1
	blank(c, rows)
	return e.timeHeads(c, rows, n)
}

// blank fills in what a step of so many tokens needs that have no meaning.
func blank(c *device.Step, rows int) {
	for i := range rows {
		c.ID[i], c.Pos[i], c.Slot[i], c.Seq[i] = 0, 0, 0, 0
	}
	c.First[0], c.First[1], c.Past[0] = 0, int32(rows), 0
	c.PageAt[0], c.PageAt[1], c.Page[0] = 0, 1, 0
}

func (e *Engine) timeHeads(c *device.Step, rows, n int) error {
	start := time.Now()
	c.Graph, c.Typed = e.heads.entry, false
	c.Tokens, c.OutRows, c.Seqs = rows, n, 1
	if err := e.ctx.Submit(c)(); err != nil {
		return err
	}
	e.heads.measure(time.Since(start))
	return nil
}

// each is what a run took of late.
func (h *heads) each() float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seconds
}

// measure takes a run into account, as times do.
func (h *heads) measure(d time.Duration) { h.seconds = policy.Blend(h.seconds, d.Seconds()) }

// headRow is the row of the heads of a drafted node, or of the sequence's last
// token for -1; nil: they were not computed.
func (r Result) headRow(o manifest.Output, node int) []float32 {
	at := r.heads + 1 + node
	switch {
	case r.heads == headsLater:
		r.step.OutRow[0] = int32(r.at + r.Rows + node)
		if err := r.e.runHeads(r.step, 1); err != nil {
			return nil // the next step fails with it
		}
		at = 0
	case r.heads < 0 || node < -1:
		return nil
	}
	return r.step.Out[r.e.heads.output][at*o.Cols:][:o.Used:o.Used]
}
