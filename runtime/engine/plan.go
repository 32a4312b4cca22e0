//go:build unix

package engine

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine/policy"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// A part is what one sequence computes in a step: its tokens done … done+n-1, the last
// outRows of which produce output rows.
type part struct {
	seq     *sequence
	n       int
	outRows int

	drafted int // nodes of its draft, after these tokens; each produces an output row
}

// plan executes the policy's decision and allocates pages and cells for the next step's
// tokens. If nothing can be computed for lack of them, it preempts sequences.
func (e *Engine) plan() ([]part, error) {
	e.makeRoom()
	for {
		e.gather()
		policy.Next(&e.input, &e.batch)
		e.draftless = e.batch.NoDrafts
		if len(e.batch.Parts) > 0 {
			return e.admitParts()
		}
		var short *sequence
		encode := e.batch.Short < 0
		if encode {
			short = e.waiting()
		} else {
			short = e.seqs[e.batch.Short]
		}
		if short == nil || len(e.pipe.inFlight) > 0 { // a step in flight can continue, or will free pages
			return nil, nil
		}
		if !e.preempt(short) {
			return nil, fmt.Errorf("bug: none of %d sequences can continue with %d KV cache pages and %d cells", len(e.seqs), e.opt.Pages, e.opt.Cells)
		}
		if encode {
			if err := e.encode(); err != nil {
				return nil, err
			}
		}
	}
}

// gather writes the policy's input.
func (e *Engine) gather() {
	stages := e.pipe.stages()
	e.input.Requests = e.input.Requests[:0]
	for _, s := range e.seqs {
		r := policy.Request{
			Length: len(s.tokens), Done: s.done, Rows: len(s.rows), RowFrom: s.outFrom, Pages: len(s.pages), Priority: s.priority,
			Decoding: s.decoding, Blocked: s.inFlight || !s.source.ready(), Waited: int(e.stats.Steps - s.last), Draft: s.draft.Len(),
		}
		if !r.Blocked {
			hit := e.cachedPrefix(s)
			r.Cached, r.CachedPages, r.CachedCells = hit.rows, hit.pages, hit.cells
		}
		e.input.Requests = append(e.input.Requests, r)
	}
	e.input.Times = &e.times
	e.input.Limits = policy.Limits{
		Tokens: e.opt.MaxTokens, Rows: e.opt.MaxOutRows, Requests: (len(e.seqs) + stages - 1) / stages, // leave as many for each of the other stages
		Pages: e.pages.unused(), PageRows: pageRows, Whole: e.whole,
	}
	if e.celled {
		e.input.Limits.Cells, e.input.Limits.CellRows = e.cells.unused(), cellRows
	}
	e.input.Objective.StepTime = e.opt.StepTime
}

// admitParts allocates the pages and cells of the batch's sequences. It takes those of the prefix
// cache first, so that none of them is evicted for another sequence.
func (e *Engine) admitParts() ([]part, error) {
	e.parts = e.parts[:0]
	for _, p := range e.batch.Parts {
		s := e.seqs[p.Request]
		e.reuse(s)
		e.parts = append(e.parts, part{seq: s, n: p.Tokens, outRows: p.Rows, drafted: p.Draft})
	}
	for i, p := range e.batch.Parts {
		s := e.parts[i].seq
		var ok bool
		if s.pages, ok = e.pages.take(s.pages, p.Pages-len(s.pages)); !ok {
			return nil, fmt.Errorf("bug: a step needs more than the %d KV cache pages", e.opt.Pages)
		}
		if !e.takeCells(s, p.Tokens, p.Draft) {
			return nil, fmt.Errorf("bug: a step needs more than the %d cells of fixed-size states", e.opt.Cells)
		}
	}
	for _, p := range e.parts {
		e.takeCached(p.seq, p.n)
	}
	return e.parts, nil
}

// preempt frees the pages and cells of the policy's victim, which are computed again later with
// the same results. If only sources hold pages, it frees those of the youngest source.
// It returns false if there is nothing to free.
func (e *Engine) preempt(needy *sequence) bool {
	if e.dropSuspended() {
		return true
	}
	if i := policy.Victim(e.input.Requests, slices.Index(e.seqs, needy)); i >= 0 {
		e.drop(e.seqs[i])
		e.stats.Preempted++
		return true
	}
	for i := len(e.seqs) - 1; i >= 0; i-- {
		x := e.seqs[i].source
		if x != nil && x != needy.source && len(x.pages) > 0 {
			e.pages.free(x.pages)
			x.pages, x.encoded = x.pages[:0], false
			e.stats.Preempted++
			return true
		}
	}
	return false
}

// drop frees a sequence's pages and cells and discards its draft.
func (e *Engine) drop(s *sequence) {
	e.pages.free(s.pages)
	e.dropCells(s)
	s.pages, s.done, s.prefix = s.pages[:0], 0, 0
	s.draft, s.drafted = s.draft.Cut(0), 0
}

// fillStep writes the planned tokens into a step's arrays.
func (e *Engine) fillStep(step *device.Step, parts []part) {
	w := stepWriter{step: step}
	for _, p := range parts {
		s := p.seq
		w.topK = s.topK
		if s.rows != nil {
			for _, at := range s.rows {
				w.output(at)
			}
		} else {
			for i := range p.outRows {
				w.output(p.n - p.outRows + i)
			}
			for i := range p.drafted {
				w.output(p.n + i)
			}
			if s.choice != nil && p.outRows > 0 && s.pending() == p.n {
				w.choose(s.choice, s.draft.Cut(p.drafted))
			}
		}
		if e.source >= 0 {
			w.source(s.source)
		}
		w.adapter(s.adapter)
		w.cellList(s.cellFrom, s.cells, s.done+p.n+p.drafted)
		w.add(s.tokens[s.done:s.done+p.n], s.types, s.done, s.pages)
		if p.drafted > 0 {
			w.addDraft(s.draft.Cut(p.drafted), s.done+p.n)
		}
	}
	step.Graph, step.Typed, step.Masked, step.Adapted, step.KVPages = e.entry, e.whole, w.masked, w.adapted, int32(e.pages.granted)
	step.Tokens, step.OutRows, step.Seqs = w.tokens, w.outRows, w.seqs
	step.InPlace = false
	for i, o := range e.graph.Outputs {
		step.Kept[i] = e.leaves(o)
	}
}

// leaves reports whether rows of an output may stay in the device's memory until they
// are read: logits, of which many callers need only the largest, and the hidden states
// that only draft heads read, on the device. An autoregressive head needs them here.
func (e *Engine) leaves(o manifest.Output) bool {
	return o.Rows == "out_rows" && (o.Name == "logits" || o.Name == "hidden" && e.heads.output > 0 && !e.heads.chained)
}

// A stepWriter fills the arrays of a step, one sequence after another. Output rows,
// source, adapter and cells of a sequence are written before its tokens.
type stepWriter struct {
	step                  *device.Step
	seqs, tokens, outRows int
	pages, sourcePages    int
	cells                 int
	masked                bool  // a sequence has a draft that is not a path
	adapted               bool  // a sequence has an adapter
	topK                  int32 // Query.TopK of the sequence added next
}

// output marks token i of the sequence added next as an output row.
func (w *stepWriter) output(i int) {
	w.step.OutRow[w.outRows], w.step.TopK[w.outRows], w.step.Chosen[w.outRows] = int32(w.tokens+i), w.topK, device.Read
	w.outRows++
}

// choose lets the device pick the tokens after the nodes of a draft, whose output rows were
// written last, and after the row before them, the draft's root. The token after a node is
// picked like one that follows as many others as the node is deep.
func (w *stepWriter) choose(choice func(ahead int) (decode.Choice, bool), draft speculate.Tree) {
	root := w.outRows - 1 - draft.Len()
	set := func(row int, ahead int32) {
		if c, ok := choice(int(ahead)); ok {
			w.step.Chosen[row], w.step.Choices[row] = device.Choose, c
		}
	}
	set(root, 0)
	for i, depth := range draft.Depths() {
		set(root+1+i, depth)
	}
}

// source sets the source of the sequence added next.
func (w *stepWriter) source(x *source) {
	w.step.XPageAt[w.seqs] = int32(w.sourcePages)
	w.sourcePages += copy(w.step.XPage[w.sourcePages:], x.pages)
	w.step.XPageAt[w.seqs+1] = int32(w.sourcePages)
	w.step.XRows[w.seqs] = int32(len(x.tokens))
}

// adapter sets the adapter of the sequence added next; nil: none.
func (w *stepWriter) adapter(x *Adapter) {
	w.step.Adapter[w.seqs] = -1
	if x != nil {
		w.step.Adapter[w.seqs], w.adapted = x.number, true
	}
}

// cellList sets the cells of the sequence added next, from a given one on; with the step's
// tokens it has the given number of rows. Cells after those in the list are not kept.
func (w *stepWriter) cellList(from int, cells []int32, rows int) {
	c := w.step
	if c.CellAt == nil {
		return
	}
	c.CellAt[w.seqs], c.CellFrom[w.seqs] = int32(w.cells), int32(from)
	w.cells += copy(c.Cell[w.cells:], cells)
	for i := from + len(cells); i <= (rows-1)/cellRows; i++ {
		c.Cell[w.cells] = -1
		w.cells++
	}
	c.CellAt[w.seqs+1] = int32(w.cells)
}

// add appends tokens of a sequence; the first one has KV cache row past.
func (w *stepWriter) add(ids, types []int32, past int, pages []int32) {
	c, q := w.step, w.seqs
	c.First[q], c.Past[q], c.PageAt[q] = int32(w.tokens), int32(past), int32(w.pages)
	w.pages += copy(c.Page[w.pages:], pages)
	for i, id := range ids {
		t, at := w.tokens+i, int32(past+i)
		c.ID[t], c.Pos[t], c.Slot[t], c.Seq[t], c.Types[t] = id, at, at, int32(q), 0
		if types != nil {
			c.Types[t] = types[i]
		}
	}
	w.tokens += len(ids)
	w.seqs++
	c.First[q+1], c.PageAt[q+1] = int32(w.tokens), int32(w.pages)
}

// collect updates the sequences of a finished step and lists their results.
func (e *Engine) collect(f *inFlightStep) []Result {
	e.results = e.results[:0]
	token, row := 0, 0
	for q, p := range f.parts {
		s := p.seq
		if s.removed || s.suspended {
			e.trimCells(s)
			token += p.n + p.drafted
			row += p.outRows + p.drafted
			continue
		}
		from := s.done
		e.keepFeatures(p, f.step, token, from)
		s.done += p.n
		s.last = e.stats.Steps
		e.cachePages(s, from)
		s.draft, s.drafted = s.draft.Cut(p.drafted), p.drafted
		s.started = (s.done + p.drafted - 1) / cellRows
		if !s.draft.Linear() {
			s.started = from / cellRows // the starts of later cells depend on the accepted path
		}
		e.settleCells(s)
		e.stats.Drafted += int64(p.drafted)
		e.results = append(e.results, Result{
			ID: s.id, First: s.done - p.outRows, Rows: p.outRows, Ready: s.pending() == 0, Cached: s.cached, Drafted: p.drafted,
			at: row, from: token, n: p.n, seq: q, heads: -1, draft: s.draft, e: e, step: f.step,
		})
		s.decoding = s.decoding || s.pending() == 0
		if p.outRows > 0 {
			s.outFrom = s.done
		}
		token += p.n + p.drafted
		row += p.outRows + p.drafted
	}
	return e.results
}
