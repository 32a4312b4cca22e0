//go:build unix

package engine

import (
	"fmt"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine/policy"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// Propose gives a sequence tokens that may follow its last one, in place of
// those proposed before. The next step that computes the last token computes as
// many of them as it has room for, from the first on, and gives their rows
// too; see Result.Drafted. They become tokens of the sequence by Accept alone:
// whatever is not accepted leaves no trace.
func (e *Engine) Propose(id ID, t speculate.Tree) error {
	s := e.find(id)
	if s == nil {
		return fmt.Errorf("bug: a draft for query %d, which is not alive", id)
	}
	if e.whole {
		return fmt.Errorf("bug: a draft for query %d of an encoder", id)
	}
	if err := t.Check(e.vocab); err != nil {
		return err
	}
	t = t.Cut(min(e.opt.Context-len(s.tokens), e.opt.Draft))
	s.draft = speculate.Tree{Tokens: append(s.draft.Tokens[:0], t.Tokens...), Parent: append(s.draft.Parent[:0], t.Parent...)}
	s.drafted = 0
	return nil
}

// Accept appends the tokens of drafted nodes to a sequence, whose rows the last
// step computed: path leads from a child of the last token from node to node.
func (e *Engine) Accept(id ID, path []int) error {
	s := e.find(id)
	if s == nil {
		return fmt.Errorf("bug: query %d, of which a draft is accepted, is not alive", id)
	}
	parent := -1
	for _, n := range path {
		if n <= parent || n >= s.drafted || int(s.draft.Parent[n]) != parent {
			return fmt.Errorf("bug: path %v does not lead through the draft of query %d, of which %d nodes are computed", path, id, s.drafted)
		}
		parent = n
	}
	from := s.done
	for i, n := range path {
		if n != i {
			e.ctx.MoveRow(device.RowOf(s.pages, s.done+i), device.RowOf(s.pages, s.done+n))
		}
		s.tokens = append(s.tokens, s.draft.Tokens[n])
	}
	s.done += len(path)
	s.want = max(s.want, s.done)
	e.cachePages(s, from)
	e.forget(s)
	e.stats.Accepted += int64(len(path))
	return nil
}

// forget drops a sequence's draft, and the pages that only its rows took.
func (e *Engine) forget(s *sequence) {
	s.draft, s.drafted = s.draft.Cut(0), 0
	if n := pagesFor(max(len(s.tokens), s.done+1)); len(s.pages) > n {
		e.pages.free(s.pages[n:])
		s.pages = s.pages[:n]
	}
}

// addDraft writes the first n nodes of a sequence's draft behind its tokens,
// which end in a step at past. The nodes of a path are like any tokens; those of
// a tree have their parents' position and one, lie one behind the other, and see
// their ancestors alone.
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

// draft sets the positions and masks of a tree's nodes behind the token at a
// position, which is the only other one of its sequence in the step.
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

// Advance accepts a path of a sequence's draft and commits the token that was
// picked behind it. ErrFull: the context has no row for it.
func (e *Engine) Advance(id ID, path []int, token int32) error {
	if err := e.Accept(id, path); err != nil {
		return err
	}
	return e.Commit(id, token)
}

// Room is what a draft for a sequence may take in the next step, when at most
// limit tokens of it are of use, and what a step with it costs. Others are
// taken to compute what they did in the last step, and those that drafted then
// to decide as this sequence does: what pays for one alone may lose for all.
// Tokens of prompts count like others: they are as much worth, and certain.
func (e *Engine) Room(id ID, limit int) speculate.Room { return e.room(id, limit, 1) }

// room is Room where at least so many sequences decide alike.
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
	room.Read = e.heads.each()
	room.Rests = e.draftless || !e.gain.Open(len(e.parts)) || e.brief()
	return room
}

// brief says whether plain steps are over before drafting has begun to pay.
func (e *Engine) brief() bool {
	plain := e.times.Step(max(1, len(e.parts)))
	return plain > 0 && plain < e.opt.Brief.Seconds()
}

// Undrafted says that no draft is to be asked for: the steps have no time for any,
// and the drafter guesses from the text alone, which it reads when they have.
func (r Result) Undrafted(d speculate.Drafter) bool {
	_, reads := d.(speculate.RowReader)
	_, chained := d.(speculate.Chainer)
	return r.e.draftless && !reads && !chained
}

// Draft asks for what may follow, after a result's draft was walked along a
// path, which gave the tokens at the end of history; at most limit more are of
// use. It may run beside others of the same step.
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
		alike = len(r.e.parts) // a head always has something to say: the others will draft too
	}
	limit = min(limit, r.e.opt.Context-len(history))
	draft := d.Propose(history, r.e.room(r.ID, limit-1, alike)) // a step gives one token more than it accepts
	if s := r.e.find(r.ID); s != nil {
		s.reads = ok && reader.Reads()
	}
	return draft
}

// Rewind makes a sequence forget its tokens from the n-th on, n at least 1. It
// may not share its last pages: neither Fork nor Options.Prefix go with it.
func (e *Engine) Rewind(id ID, n int) error {
	s := e.find(id)
	if s == nil || n < 1 || n > len(s.tokens) {
		return fmt.Errorf("bug: query %d, which is to have %d tokens, is not alive or has fewer", id, n)
	}
	for _, page := range s.pages[min(n/pageRows, len(s.pages)):] {
		if e.opt.Prefix || e.pages.refs[page] != 1 {
			return fmt.Errorf("bug: query %d shares pages that it would write again", id)
		}
	}
	s.tokens, s.done, s.want = s.tokens[:n], min(s.done, n), min(s.want, n)
	e.forget(s)
	return nil
}
