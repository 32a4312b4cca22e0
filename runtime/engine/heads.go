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

// headRows is Output.Rows of the output of the draft heads' graph.
const headRows = "heads"

// heads run the graph "medusa" after steps that have sequences with drafters that read
// its output. The graph's input is the hidden states that the step left in memory.
type heads struct {
	entry   int     // index of the graph, if the model has one
	output  int     // index of its output among the engine's outputs; 0: none
	seconds float64 // estimated duration of a run

	chained bool // an autoregressive head: drafters run it on tokens chosen after the hidden states
	cached  bool // the head is a draft layer, which has a KV cache: see draftRows
	hidden  int  // index of the states that the head reads among the outputs
	batch   headBatch

	mu sync.Mutex // guards runs, seconds and batch
}

// findHeads appends the output of the draft heads' graph to the engine's outputs and
// returns the graph, or nil if the model has none that the engine's graph can feed.
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
	if m.Medusa.Cached {
		e.heads.hidden = e.Output("features")
	}
	e.heads.batch.ready.L = &e.heads.mu
	e.graph.Outputs = append(slices.Clone(e.graph.Outputs), out)
	return &g
}

// headsLater marks a result with draft heads that are computed on demand, for the one
// row that the drafter asks for.
const headsLater = -2

// planHeads computes the draft heads for the last token and the drafted tokens of every
// result with a drafter that reads them, all in one run. For a single result the run is
// deferred until the drafter knows which row it needs.
func (e *Engine) planHeads(results []Result) error {
	if e.heads.output == 0 {
		return nil
	}
	if e.heads.chained {
		e.heads.batch.begin(results)
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

// runHeads computes the draft heads of the n rows listed in OutRow.
func (e *Engine) runHeads(c *device.Step, n int) error {
	e.heads.mu.Lock()
	defer e.heads.mu.Unlock()
	rows := int(slices.Max(c.OutRow[:n])) + 1
	blank(c, rows)
	c.InPlace = true
	return e.timeHeads(c, rows, n)
}

// blank sets the inputs of a run of the given number of rows that ignores tokens, the KV
// cache and adapters.
func blank(c *device.Step, rows int) {
	for i := range rows {
		c.ID[i], c.Pos[i], c.Slot[i], c.Seq[i] = 0, 0, 0, 0
	}
	c.First[0], c.First[1], c.Past[0] = 0, int32(rows), 0
	c.PageAt[0], c.PageAt[1], c.Page[0] = 0, 1, 0
	c.Adapted = false
	w := stepWriter{step: c}
	w.cellList(0, nil, 0)
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

// each returns the estimated duration of a run in seconds.
func (h *heads) each() float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seconds
}

// measure updates the estimate with the duration of a run.
func (h *heads) measure(d time.Duration) { h.seconds = policy.Blend(h.seconds, d.Seconds()) }

// headRow returns the draft heads' row for a drafted node, or for the sequence's last
// token if node is -1. It returns nil if the row was not computed.
func (r Result) headRow(o manifest.Output, node int) []float32 {
	at := r.heads + 1 + node
	switch {
	case r.heads == headsLater:
		r.step.OutRow[0] = int32(r.at + r.Rows + node)
		if err := r.e.runHeads(r.step, 1); err != nil {
			return nil // the next step returns the error
		}
		at = 0
	case r.heads < 0 || node < -1:
		return nil
	}
	return r.step.Out[r.e.heads.output][at*o.Cols:][:o.Used:o.Used]
}
