//go:build unix

package engine

import (
	"slices"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// draftRows is a sequence's part of the KV cache of a draft layer, which has the pages
// of the model's. Row i is computed from the model's state of token i and from token
// i + 1, so it is due when both are known. Rows wait until the layer drafts, or until
// there are many of them. Rows of drafted tokens follow; the next ones overwrite them.
//
// Cached pages keep their rows. The last row of a page was computed with the next token
// of another sequence. That can cost a draft its acceptance, but changes no token.
type draftRows struct {
	n        int       // rows that are computed, of verified tokens
	features []float32 // states of the tokens from row n on
	nodes    []float32 // states of the nodes that the last step computed
	moved    []int     // path of nodes whose rows were moved before it was accepted; nil: none
}

// A draftRun computes consecutive rows of a draft layer.
type draftRun struct {
	s        *sequence
	past     int // first row
	ids      []int32
	features []float32
	q        *headRequest // receives the result of the last row; nil: none
}

// pendingRows is the number of rows of a sequence from which on they are computed without
// a draft. It bounds the memory for their states.
const pendingRows = pageRows

// featureCols returns the floats of a row of states that the draft layer reads.
func (e *Engine) featureCols() int { return e.graph.Outputs[e.heads.hidden].Cols }

// keepFeatures copies the states of a step's tokens of one sequence, of which p.n start at
// row from of the sequence and at the given token of the step.
func (e *Engine) keepFeatures(p part, step *device.Step, token, from int) {
	if !e.heads.cached {
		return
	}
	d, cols := &p.seq.rowsOfDraft, e.featureCols()
	if d.n+len(d.features)/cols != from { // earlier rows are cached, or will never be computed
		d.n, d.features = from, d.features[:0]
	}
	rows := step.Out[e.heads.hidden][token*cols:]
	d.features = append(d.features, rows[:p.n*cols]...)
	d.nodes = append(d.nodes[:0], rows[p.n*cols:(p.n+p.drafted)*cols]...)
	d.moved = nil
}

// keepAccepted adds the states of accepted nodes to those of the sequence's tokens. It
// does nothing if the draft layer has computed their rows.
func (e *Engine) keepAccepted(s *sequence, path []int) {
	if !e.heads.cached {
		return
	}
	d, cols := &s.rowsOfDraft, e.featureCols()
	if d.n+len(d.features)/cols == s.done {
		for _, n := range path {
			d.features = append(d.features, d.nodes[n*cols:][:cols]...)
		}
	}
}

// feedDraft computes the draft layer's rows of sequences that have many of them.
func (e *Engine) feedDraft(f *inFlightStep) error {
	if !e.heads.cached {
		return nil
	}
	var runs []draftRun
	cols := e.featureCols()
	for _, p := range f.parts {
		s := p.seq
		d := &s.rowsOfDraft
		n := min(len(d.features)/cols, len(s.tokens)-1-d.n)
		if n < pendingRows || s.removed || s.suspended {
			continue
		}
		runs = append(runs, draftRun{s: s, past: d.n, ids: s.tokens[d.n+1:][:n], features: d.features[:n*cols]})
	}
	err := e.runDraft(f.step, runs)
	for _, r := range runs {
		d := &r.s.rowsOfDraft
		d.n += len(r.ids)
		d.features = slices.Clone(d.features[len(r.ids)*cols:]) // frees the memory of a prompt's states
	}
	return err
}

// runDraft computes rows of the draft layer in as few steps as possible.
func (e *Engine) runDraft(c *device.Step, runs []draftRun) error {
	for runs = slices.Clone(runs); len(runs) > 0; {
		w, cols, n := stepWriter{step: c}, e.featureCols(), 0
		var results []*headRequest
		for n < len(runs) && w.tokens < e.opt.MaxTokens && w.seqs < e.opt.MaxSeqs && w.outRows < e.opt.MaxOutRows {
			r := &runs[n]
			k := min(len(r.ids), e.opt.MaxTokens-w.tokens)
			copy(c.Out[e.heads.hidden][w.tokens*cols:], r.features[:min(k*cols, len(r.features))])
			if k == len(r.ids) && r.q != nil {
				w.output(k - 1)
				results = append(results, r.q)
			}
			w.adapter(r.s.adapter)
			w.cellList(0, nil, 0) // the draft layer has none
			w.add(r.ids[:k], nil, r.past, r.s.pages)
			if k < len(r.ids) {
				r.past, r.ids, r.features = r.past+k, r.ids[k:], r.features[k*cols:]
				break
			}
			n++
		}
		if err := e.submitDraft(c, &w, results); err != nil {
			return err
		}
		runs = runs[n:]
	}
	return nil
}

// submitDraft runs the draft layer on the rows that w has written.
func (e *Engine) submitDraft(c *device.Step, w *stepWriter, results []*headRequest) error {
	start := time.Now()
	c.Graph, c.Typed, c.Masked, c.Adapted, c.InPlace, c.KVPages = e.heads.entry, false, false, w.adapted, false, int32(e.pages.granted)
	c.Tokens, c.OutRows, c.Seqs = w.tokens, w.outRows, w.seqs
	if err := e.ctx.Submit(c)(); err != nil {
		return err
	}
	if len(results) > 0 {
		e.heads.measure(time.Since(start))
	}
	o := e.graph.Outputs[e.heads.output]
	for i, q := range results {
		q.result = append(q.result[:0], c.Out[e.heads.output][i*o.Cols:][:o.Used]...)
	}
	return nil
}

// cachedChain is chainOf for a draft layer. Its first run computes all rows that are due.
func (r Result) cachedChain(path []int) speculate.ChainRun {
	ahead := 0 // rows of drafted tokens
	return func(dst, state []float32, token int32) []float32 {
		q := &headRequest{step: r.step, token: token, result: dst, of: &r, path: path, state: state}
		if state == nil {
			ahead = 0
		} else {
			ahead++
			q.ahead = ahead
		}
		return r.e.awaitHead(q)
	}
}

// draftRun returns the run for a request; ok is false if there is none.
func (q *headRequest) draftRun() (run draftRun, ok bool) {
	e := q.of.e
	s := e.find(q.of.ID)
	if s == nil {
		return run, false
	}
	d, cols := &s.rowsOfDraft, e.featureCols()
	run = draftRun{s: s, q: q}
	if q.ahead > 0 {
		run.past, run.ids, run.features = d.n+q.ahead-1, []int32{q.token}, q.state
		return run, e.reachRow(s, run.past)
	}
	run.past = d.n
	run.ids = slices.Clone(s.tokens[min(d.n+1, len(s.tokens)):])
	run.features = slices.Clone(d.features)
	for _, n := range q.path {
		run.ids = append(run.ids, s.draft.Tokens[n])
		run.features = append(run.features, d.nodes[n*cols:][:cols]...)
	}
	run.ids = append(run.ids, q.token)
	if len(run.ids)*cols != len(run.features) {
		return run, false
	}
	e.movePath(s, q.path)
	d.n, d.features = d.n+len(run.ids), d.features[:0]
	return run, e.reachRow(s, d.n-1)
}

// reachRow allocates the page of a row of a drafted token, if one is free. Commit frees
// it again.
func (e *Engine) reachRow(s *sequence, row int) (ok bool) {
	s.pages, ok = e.pages.take(s.pages, max(0, row/pageRows+1-len(s.pages)))
	return ok
}

// movePath moves the rows and the contents of cells of an accepted path to their
// positions, unless that was done before.
func (e *Engine) movePath(s *sequence, path []int) {
	d := &s.rowsOfDraft
	if d.moved != nil {
		return
	}
	for i, n := range path {
		if n == i {
			continue
		}
		e.ctx.MoveRow(device.RowOf(s.pages, s.done+i), device.RowOf(s.pages, s.done+n))
		if e.celled {
			e.ctx.MoveInCells(device.CellRowOf(s.cells, s.cellFrom, s.done+i), device.CellRowOf(s.cells, s.cellFrom, s.done+n))
		}
		d.moved = slices.Clone(path)
	}
}
