//go:build unix

package engine

import "fmt"

// A part is what one sequence computes in a step: its tokens done … done+n-1,
// of which the last wanted ones give rows.
type part struct {
	seq    *sequence
	n      int
	wanted int
}

// plan chooses the tokens of the next step and gives their rows pages.
// Sequences in decoding come first, so that a long prompt delays them by at
// most one budget; then prompts, oldest first.
func (e *Engine) plan() ([]part, error) {
	for {
		e.parts = e.parts[:0]
		budget := budget{tokens: e.opt.MaxTokens, wanted: e.opt.MaxWanted}
		short := e.planWhere(&budget, func(s *sequence) bool { return s.pending() == 1 })
		if s := e.planWhere(&budget, func(s *sequence) bool { return s.pending() > 1 }); short == nil {
			short = s
		}
		if len(e.parts) > 0 || short == nil {
			return e.parts, nil
		}
		if !e.preempt(short) {
			return nil, fmt.Errorf("bug: %d sequences, none can go on with %d state pages", len(e.seqs), e.opt.Pages)
		}
	}
}

// A budget is what is left of a step.
type budget struct{ tokens, wanted int }

// planWhere plans the sequences that a test selects and returns the first that
// found no pages.
func (e *Engine) planWhere(b *budget, selected func(*sequence) bool) (short *sequence) {
	for _, s := range e.seqs {
		if s.pending() == 0 || !selected(s) {
			continue
		}
		n, wanted := b.fit(s)
		if n == 0 {
			continue
		}
		var ok bool
		if s.pages, ok = e.pages.take(s.pages, pagesFor(s.done+n)-len(s.pages)); !ok {
			if short == nil {
				short = s
			}
			continue
		}
		e.parts = append(e.parts, part{s, n, wanted})
		b.tokens -= n
		b.wanted -= wanted
	}
	return short
}

// fit is how many tokens of s, and how many wanted rows among them, the
// budget has room for.
func (b *budget) fit(s *sequence) (n, wanted int) {
	n = min(s.pending(), b.tokens)
	wanted = max(0, s.done+n-max(s.want, s.done))
	if wanted > b.wanted {
		n -= wanted - b.wanted
		wanted = b.wanted
	}
	return max(n, 0), wanted
}

// preempt takes the pages of the youngest sequence that has some and is not
// needy; its tokens are computed again when there is room, with the same
// results. It reports false when there is none.
func (e *Engine) preempt(needy *sequence) bool {
	for i := len(e.seqs) - 1; i >= 0; i-- {
		s := e.seqs[i]
		if s != needy && len(s.pages) > 0 {
			e.pages.free(s.pages)
			s.pages, s.done = s.pages[:0], 0
			return true
		}
	}
	return false
}

// fillStep writes the planned tokens into the step's arrays.
func (e *Engine) fillStep(parts []part) (tokens, wanted int) {
	c := e.ctx
	page := 0
	for q, p := range parts {
		s := p.seq
		c.First[q], c.Past[q], c.PageAt[q] = int32(tokens), int32(s.done), int32(page)
		page += copy(c.Page[page:], s.pages)
		for i := range p.n {
			at := s.done + i
			t := tokens + i
			c.ID[t], c.Pos[t], c.Slot[t], c.Seq[t] = s.tokens[at], int32(at), int32(at), int32(q)
			if i >= p.n-p.wanted {
				c.Want[wanted] = int32(t)
				wanted++
			}
		}
		tokens += p.n
	}
	c.First[len(parts)], c.PageAt[len(parts)] = int32(tokens), int32(page)
	return tokens, wanted
}

// collect moves the sequences on and lists what each got.
func (e *Engine) collect(parts []part) []Result {
	e.results = e.results[:0]
	token, row := 0, 0
	for q, p := range parts {
		s := p.seq
		s.done += p.n
		e.results = append(e.results, Result{
			ID: s.id, First: s.done - p.wanted, Rows: p.wanted, Ready: s.pending() == 0,
			at: row, from: token, n: p.n, seq: q, e: e,
		})
		if p.wanted > 0 {
			s.want = s.done
		}
		token += p.n
		row += p.wanted
	}
	return e.results
}
