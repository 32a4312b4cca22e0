//go:build unix

package engine

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/engine/policy"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// Propose sets a sequence's draft, a tree of tokens that may follow its last one, in
// place of an earlier draft. The next step that computes the last token also computes a
// prefix of the draft's nodes, as many as the step has room for, and returns their
// output rows; see Result.Drafted. Only Accept appends drafted tokens to the sequence;
// rejected nodes leave no trace.
func (e *Engine) Propose(id ID, t speculate.Tree) error {
	s := e.find(id)
	if s == nil {
		return fmt.Errorf("bug: Propose for query %d, which is not live", id)
	}
	if e.whole {
		return fmt.Errorf("bug: Propose for query %d of an encoder", id)
	}
	if err := t.Check(e.vocab); err != nil {
		return err
	}
	t = t.Cut(min(e.opt.Context-len(s.tokens), e.opt.Draft))
	s.draft = speculate.Tree{Tokens: append(s.draft.Tokens[:0], t.Tokens...), Parent: append(s.draft.Parent[:0], t.Parent...)}
	s.drafted = 0
	e.trimCells(s)
	return nil
}

// Accept appends drafted tokens to a sequence. path lists nodes of the draft that the
// last step computed; the first is a child of the sequence's last token, each further
// one a child of the node before it.
func (e *Engine) Accept(id ID, path []int) error {
	s := e.find(id)
	if s == nil {
		return fmt.Errorf("bug: Accept for query %d, which is not live", id)
	}
	parent := -1
	for _, n := range path {
		if n <= parent || n >= s.drafted || int(s.draft.Parent[n]) != parent {
			return fmt.Errorf("bug: path %v does not follow the draft of query %d, which has %d computed nodes", path, id, s.drafted)
		}
		parent = n
	}
	from := s.done
	if moved := s.rowsOfDraft.moved; moved != nil && !slices.Equal(moved, path) {
		return fmt.Errorf("bug: path %v of query %d is not the path %v that it drafted after", path, id, moved)
	}
	e.movePath(s, path)
	e.keepAccepted(s, path)
	s.rowsOfDraft.moved = nil
	for _, n := range path {
		s.tokens = append(s.tokens, s.draft.Tokens[n])
	}
	s.done += len(path)
	s.outFrom = max(s.outFrom, s.done)
	e.cachePages(s, from)
	e.dropDraft(s)
	e.stats.Accepted += int64(len(path))
	return nil
}

// dropDraft discards a sequence's draft and frees the pages and cells that only its nodes
// used.
func (e *Engine) dropDraft(s *sequence) {
	s.draft, s.drafted = s.draft.Cut(0), 0
	if n := pagesFor(max(len(s.tokens), s.done+1)); len(s.pages) > n {
		e.pages.free(s.pages[n:])
		s.pages = s.pages[:n]
	}
	e.settleCells(s)
}

// addDraft writes the nodes of a sequence's draft after its other tokens of the step;
// past is the sequence's length in KV cache rows. The nodes of a path are like any
// tokens. Nodes of a tree occupy consecutive rows, but have the position of their
// parent plus one and attend only to their ancestors (tree attention).
func (w *stepWriter) addDraft(t speculate.Tree, past int) {
	c, q := w.step, w.seqs-1
	for i, id := range t.Tokens {
		at, slot := w.tokens+i, int32(past+i)
		c.ID[at], c.Slot[at], c.Pos[at], c.Seq[at], c.Types[at] = id, slot, slot, int32(q), 0
	}
	w.draft(t, int32(past)-1)
	w.tokens += t.Len()
	c.First[q+1] = int32(w.tokens)
}

// draft sets the positions and attention masks of a tree's nodes. The sequence has one
// other token in the step, the tree's root, at position last.
func (w *stepWriter) draft(t speculate.Tree, last int32) {
	if t.Linear() {
		return
	}
	c, words := w.step, w.step.MaskWords
	if !w.masked {
		w.masked = true
		clear(c.Mask)
	}
	root := (w.tokens - 1) * words
	c.Mask[root] = 1
	for i, p := range t.Parent {
		own, up, pos := (w.tokens+i)*words, root, last
		if p >= 0 {
			up, pos = (w.tokens+int(p))*words, c.Pos[w.tokens+int(p)]
		}
		copy(c.Mask[own:own+words], c.Mask[up:up+words])
		c.Mask[own+(i+1)/64] |= 1 << ((i + 1) % 64)
		c.Pos[w.tokens+i] = pos + 1
	}
}

// Advance accepts a path of a sequence's draft and commits the token chosen after it.
// It returns ErrFull if the context has no row for the token.
func (e *Engine) Advance(id ID, path []int, token int32) error {
	if err := e.Accept(id, path); err != nil {
		return err
	}
	return e.Commit(id, token)
}

// Room returns what a draft of at most limit tokens for a sequence costs in the next
// step. It assumes that the other sequences compute as many tokens as in the last step,
// prefill tokens included, and that those that drafted then draft as much as this one:
// a draft that pays for one sequence alone may not pay for all.
func (e *Engine) Room(id ID, limit int) speculate.Room { return e.room(id, limit, 1) }

// room is Room with at least the given number of sequences that draft alike, this one
// included.
func (e *Engine) room(id ID, limit, least int) speculate.Room {
	others, tokens, alike := len(e.seqs)-1, 0, 1
	for _, p := range e.parts {
		if p.seq.id == id {
			continue
		}
		tokens += p.n
		if p.drafted > 0 {
			alike++
		}
	}
	alike = max(alike, least)
	room := policy.Room(&e.times, min(limit, e.opt.Draft), others, tokens, alike)
	room.HeadTime = e.heads.each()
	room.Paused = e.draftless || !e.gain.Open(len(e.parts)) || e.tooShort()
	return room
}

// tooShort reports whether plain steps take less than Options.Brief.
func (e *Engine) tooShort() bool {
	plain := e.times.Step(max(1, len(e.parts)))
	return plain > 0 && plain < e.opt.Brief.Seconds()
}

// Undrafted reports whether the caller should not ask d for a draft: the next step has
// no time for drafts, and d needs only the text, which it can observe later.
func (r Result) Undrafted(d speculate.Drafter) bool {
	_, reads := d.(speculate.RowReader)
	_, chained := d.(speculate.Chainer)
	return r.e.draftless && !reads && !chained
}

// Draft observes the tokens that a result added to a sequence and proposes a draft of
// at most limit tokens for the next step. path lists the accepted nodes of the result's
// draft, tokens are those that d has not observed, and history ends with them. Draft
// may run concurrently with those of other sequences of the step.
func (r Result) Draft(d speculate.Drafter, path []int, tokens, history []int32, limit int) speculate.Draft {
	d.Observe(tokens)
	reader, ok := d.(speculate.RowReader)
	if ok && r.heads != -1 {
		node := -1
		if len(path) > 0 {
			node = path[len(path)-1]
		}
		reader.ReadRows(func(output int) []float32 { return r.Node(output, node) })
	}
	alike := 1
	if chainer, ok := d.(speculate.Chainer); ok && r.e.heads.chained && r.heads == headsLater {
		chainer.Chain(r.chainOf(path))
		alike = len(r.e.parts) // the other sequences' heads always propose something too
	}
	limit = min(limit, r.e.opt.Context-len(history))
	draft := d.Propose(history, r.e.room(r.ID, limit-1, alike)) // a step adds one token more than it accepts
	if s := r.e.find(r.ID); s != nil {
		s.reads = ok && reader.Reads()
	}
	return draft
}

// Rewind removes a sequence's tokens from index n on; n is at least 1. The sequence
// must not share the pages that it will write again, so Rewind cannot be combined with
// Fork or Options.Prefix. In a model with fixed-size states, the next step computes the
// sequence again if the states before token n are not kept; see Options.Rewind.
func (e *Engine) Rewind(id ID, n int) error {
	s := e.find(id)
	if s == nil || n < 1 || n > len(s.tokens) {
		return fmt.Errorf("bug: Rewind of query %d to %d tokens: it is not live or has fewer", id, n)
	}
	for _, page := range s.pages[min(n/pageRows, len(s.pages)):] {
		if e.opt.Prefix || e.pages.refs[page] != 1 {
			return fmt.Errorf("bug: Rewind of query %d: it shares pages that it would write again", id)
		}
	}
	s.tokens, s.done, s.outFrom = s.tokens[:n], min(s.done, n), min(s.outFrom, n)
	if e.celled && s.done > 0 && (s.done-1)/cellRows < s.cellFrom {
		e.drop(s)
	}
	e.dropDraft(s)
	return nil
}
