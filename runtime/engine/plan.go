//go:build unix

package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/device"
)

// A part is what one sequence computes in a step: its tokens done … done+n-1,
// of which the last wanted ones give rows.
type part struct {
	seq    *sequence
	n      int
	wanted int

	drafted int // nodes of its draft, behind these tokens, which all give rows
}

// plan chooses the tokens of the next step and gives their rows pages.
// Sequences in decoding come first, so that a prompt delays them by at most
// one step; then prompts, see promptOrder. Those that come together begin
// together, see gather.
func (e *Engine) plan() ([]part, error) {
	e.gather()
	for {
		e.parts = e.parts[:0]
		budget := budget{tokens: e.opt.MaxTokens, wanted: e.opt.MaxWanted, seqs: e.fair(), whole: e.whole}
		short := e.planAll(&budget, e.selected(func(s *sequence) bool { return s.pending() == 1 && !s.held }, urgency))
		prompts := e.selected(func(s *sequence) bool { return s.pending() > 1 }, promptOrder)
		if !e.whole {
			decoding := e.opt.MaxTokens - budget.tokens
			most := e.draftLimit(decoding)
			e.draftless = most == 0
			e.planDrafts(&budget, min(e.draftRoom(&budget, len(prompts) > 0), most), short == nil)
			budget.tokens = min(budget.tokens, e.promptRoom(e.opt.MaxTokens-budget.tokens, prompts))
		}
		if s := e.planAll(&budget, prompts); short == nil {
			short = s
		}
		if len(e.parts) > 0 {
			e.age(prompts)
			return e.parts, nil
		}
		if e.letGo() {
			continue
		}
		encode := short == nil
		if encode {
			short = e.waiting()
		}
		if short == nil || len(e.fly.flying) > 0 { // a step that lands gives pages back, or can go on itself
			return nil, nil
		}
		if !e.preempt(short) {
			return nil, fmt.Errorf("bug: %d sequences, none can go on with %d state pages", len(e.seqs), e.opt.Pages)
		}
		if encode {
			if err := e.encode(); err != nil {
				return nil, err
			}
		}
	}
}

// selected lists the sequences that can go on and that a test accepts, in an
// order; among equals the older one first.
func (e *Engine) selected(accept func(*sequence) bool, order func(a, b *sequence) int) []*sequence {
	e.queue = e.queue[:0]
	for _, s := range e.seqs {
		if s.pending() > 0 && !s.flying && s.source.ready() && accept(s) {
			e.queue = append(e.queue, s)
		}
	}
	slices.SortStableFunc(e.queue, order)
	return e.queue
}

// urgency puts smaller numbers of Priority first.
func urgency(a, b *sequence) int { return cmp.Compare(a.priority, b.priority) }

// patience is how many steps a prompt stands back behind shorter ones.
const patience = 16

// promptOrder puts prompts first that others have overtaken too often, then the
// more urgent, then those with the fewest tokens left: a short question does
// not wait for a long document, which still gets its turn.
func promptOrder(a, b *sequence) int {
	if lateA, lateB := a.passed >= patience, b.passed >= patience; lateA != lateB {
		if lateA {
			return -1
		}
		return 1
	}
	if c := urgency(a, b); c != 0 {
		return c
	}
	return cmp.Compare(a.pending(), b.pending())
}

// age counts the steps in which prompts that could go on got nothing.
func (e *Engine) age(prompts []*sequence) {
	for _, s := range prompts {
		s.passed++
	}
	for _, p := range e.parts {
		p.seq.passed = 0
	}
}

// A budget is what is left of a step.
type budget struct {
	tokens, wanted int
	seqs           int  // that a step takes on a pipeline
	whole          bool // sequences are not cut
}

// planAll plans sequences in their order and returns the first that found no
// pages.
func (e *Engine) planAll(b *budget, list []*sequence) (short *sequence) {
	for _, s := range list {
		if b.tokens == 0 || b.seqs == 0 {
			break
		}
		fresh := e.reuse(s)
		n, wanted := b.fit(s)
		if n == 0 {
			continue
		}
		var ok bool
		if s.pages, ok = e.pages.take(s.pages, pagesFor(s.done+n)-len(s.pages)); !ok {
			if fresh { // it holds nothing while it waits
				e.drop(s)
			}
			if short == nil {
				short = s
			}
			continue
		}
		e.parts = append(e.parts, part{seq: s, n: n, wanted: wanted})
		b.tokens -= n
		b.wanted -= wanted
		b.seqs--
	}
	return short
}

// fit is how many tokens of s, and how many wanted rows among them, the
// budget has room for.
func (b *budget) fit(s *sequence) (n, wanted int) {
	n = min(s.pending(), b.tokens)
	if s.held {
		n = min(n, s.pending()-1)
	}
	if b.whole {
		if n < s.pending() || len(s.rows) > b.wanted {
			return 0, 0
		}
		return n, len(s.rows)
	}
	wanted = max(0, s.done+n-max(s.want, s.done))
	if wanted > b.wanted {
		n -= wanted - b.wanted
		wanted = b.wanted
	}
	return max(n, 0), wanted
}

// preempt takes the pages of the least urgent, among equals the youngest
// sequence that has some and is not needy; its tokens are computed again when
// there is room, with the same results. When only sources hold pages, the
// youngest goes. It reports false when there is nothing to take.
func (e *Engine) preempt(needy *sequence) bool {
	var victim *sequence
	for _, s := range e.seqs {
		if s != needy && !s.flying && len(s.pages) > 0 && (victim == nil || s.priority >= victim.priority) {
			victim = s
		}
	}
	if victim != nil {
		e.drop(victim)
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

// drop takes a sequence's pages.
func (e *Engine) drop(s *sequence) {
	e.pages.free(s.pages)
	s.pages, s.done, s.prefix = s.pages[:0], 0, 0
	s.draft, s.drafted = s.draft.Cut(0), 0
}

// fillStep writes the planned tokens into a step.
func (e *Engine) fillStep(step *device.Step, parts []part) {
	w := stepWriter{step: step}
	for _, p := range parts {
		s := p.seq
		if s.rows != nil {
			for _, at := range s.rows {
				w.want(at)
			}
		} else {
			for i := range p.wanted {
				w.want(p.n - p.wanted + i)
			}
			for i := range p.drafted {
				w.want(p.n + i)
			}
		}
		if e.source >= 0 {
			w.source(s.source)
		}
		w.add(s.tokens[s.done:s.done+p.n], s.types, s.done, s.pages)
		if p.drafted > 0 {
			w.addDraft(s.draft.Cut(p.drafted), s.done+p.n)
		}
	}
	step.Graph, step.Typed, step.Masked, step.TopPage = e.entry, e.whole, w.masked, e.pages.last
	step.Tokens, step.OutRows, step.Seqs = w.tokens, w.wanted, w.seqs
}

// A stepWriter fills the arrays of a step, sequence after sequence: what is
// wanted and its source first, then its tokens.
type stepWriter struct {
	step                 *device.Step
	seqs, tokens, wanted int
	pages, sourcePages   int
	masked               bool // a sequence has a tree
}

// want marks token i of the sequence that is added next.
func (w *stepWriter) want(i int) {
	w.step.OutRow[w.wanted] = int32(w.tokens + i)
	w.wanted++
}

// source says which source the sequence has that is added next.
func (w *stepWriter) source(x *source) {
	w.step.XPageAt[w.seqs] = int32(w.sourcePages)
	w.sourcePages += copy(w.step.XPage[w.sourcePages:], x.pages)
	w.step.XPageAt[w.seqs+1] = int32(w.sourcePages)
	w.step.XRows[w.seqs] = int32(len(x.tokens))
}

// add adds tokens of a sequence from its row past on.
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

// collect moves the sequences on that are still there and lists what each got.
func (e *Engine) collect(f *flight) []Result {
	e.results = e.results[:0]
	token, row := 0, 0
	for q, p := range f.parts {
		s := p.seq
		if s.removed {
			token += p.n + p.drafted
			row += p.wanted + p.drafted
			continue
		}
		from := s.done
		s.done += p.n
		e.remember(s, from)
		s.draft, s.drafted = s.draft.Cut(p.drafted), p.drafted
		e.stats.Drafted += int64(p.drafted)
		e.results = append(e.results, Result{
			ID: s.id, First: s.done - p.wanted, Rows: p.wanted, Ready: s.pending() == 0, Cached: s.cached, Drafted: p.drafted,
			at: row, from: token, n: p.n, seq: q, heads: -1, draft: s.draft, e: e, step: f.step,
		})
		s.begun = s.begun || s.pending() == 0
		if p.wanted > 0 {
			s.want = s.done
		}
		token += p.n + p.drafted
		row += p.wanted + p.drafted
	}
	return e.results
}
