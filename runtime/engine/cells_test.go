//go:build unix

package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// A client is a sequence of TestCells.
type client struct {
	tokens []int32 // all, computed or not
	draft  speculate.Tree
	ready  bool // its last result was ready, and nothing was committed since
	paused bool
	forked bool
}

// A crowd is the clients of an engine.
type crowd struct {
	*testing.T
	r     *rand.Rand
	e     *engine.Engine
	bases [][]int32 // of which prompts start with a part
	live  map[engine.ID]*client
}

func (c *crowd) must(err error) {
	if err != nil {
		c.Helper()
		c.Fatal(err)
	}
}

// ids lists the live clients in a fixed order.
func (c *crowd) ids() (list []engine.ID) {
	for id := range c.live {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// add adds a query with a prompt of a shared and an own part.
func (c *crowd) add() {
	base := c.bases[c.r.IntN(len(c.bases))]
	p := slices.Concat(base[:c.r.IntN(len(base)+1)], prompt(c.r, 1+c.r.IntN(40)))
	id, err := c.e.AddQuery(engine.Query{Tokens: p, Last: c.r.IntN(4), PrefixScope: fmt.Sprint(c.r.IntN(8) / 7)})
	if errors.Is(err, engine.ErrBusy) {
		return
	}
	c.must(err)
	c.live[id] = &client{tokens: p}
}

// take checks a result.
func (c *crowd) take(res engine.Result) {
	q := c.live[res.ID]
	if q == nil || q.paused {
		c.Fatalf("a result of %d, which is removed or suspended", res.ID)
	}
	for i := range res.Rows {
		if !isHash(res.Row(0, i), hashOf(q.tokens[:res.First+i+1])) {
			c.Fatalf("sequence %d: the row of token %d of %d differs", res.ID, res.First+i, len(q.tokens))
		}
	}
	if q.ready = res.Ready; !q.ready {
		return
	}
	q.draft = q.draft.Cut(res.Drafted)
	h := hashOf(q.tokens)
	hashes := make([]uint64, res.Drafted)
	for i, p := range q.draft.Parent {
		hashes[i] = next(h, q.draft.Tokens[i])
		if p >= 0 {
			hashes[i] = next(hashes[p], q.draft.Tokens[i])
		}
		if !isHash(res.Node(0, i), hashes[i]) {
			c.Fatalf("sequence %d of %d tokens: the row of node %d of %d differs", res.ID, len(q.tokens), i, res.Drafted)
		}
	}
}

// path returns a random path in a draft, mostly a long one.
func (c *crowd) path(t speculate.Tree) (path []int) {
	at := int32(-1)
	for c.r.IntN(12) > 0 {
		var children []int
		for i, p := range t.Parent {
			if p == at {
				children = append(children, i)
			}
		}
		if len(children) == 0 {
			break
		}
		n := children[c.r.IntN(len(children))]
		path, at = append(path, n), int32(n)
	}
	return path
}

// tree returns a random draft: a path or a tree.
func (c *crowd) tree(n int) (t speculate.Tree) {
	linear := c.r.IntN(2) == 0
	for i := range n {
		p := i - 1
		if !linear && c.r.IntN(3) == 0 {
			p = c.r.IntN(i+1) - 1
		}
		token := c.r.Int32N(90)
		for t.Child(p, token) >= 0 {
			token = (token + 1) % 90
		}
		t.Tokens, t.Parent = append(t.Tokens, token), append(t.Parent, int32(p))
	}
	return t
}

// advance continues a client that is ready.
func (c *crowd) advance(id engine.ID) {
	q := c.live[id]
	if path := c.path(q.draft); len(path) > 0 {
		c.must(c.e.Accept(id, path))
		for _, n := range path {
			q.tokens = append(q.tokens, q.draft.Tokens[n])
		}
		q.draft = speculate.Tree{}
		if c.r.IntN(4) == 0 { // commit later
			return
		}
	}
	if c.r.IntN(8) == 0 {
		c.fork(id)
	}
	opt := c.e.Options()
	if !opt.Prefix && !q.forked && c.r.IntN(6) == 0 {
		n := len(q.tokens) - c.r.IntN(min(len(q.tokens), 1+c.r.IntN(40)))
		c.must(c.e.Rewind(id, n))
		q.tokens = slices.Clone(q.tokens[:n])
	}
	if c.r.IntN(30) == 0 || len(q.tokens) > 500 {
		c.e.Remove(id)
		delete(c.live, id)
		return
	}
	c.commit(id)
}

func (c *crowd) fork(id engine.ID) {
	f, err := c.e.Fork(id)
	if errors.Is(err, engine.ErrBusy) {
		return
	}
	c.must(err)
	q := c.live[id]
	q.forked = true
	c.live[f] = &client{tokens: slices.Clone(q.tokens), forked: true}
	c.commit(f)
}

// commit appends a token, and perhaps proposes a draft.
func (c *crowd) commit(id engine.ID) {
	q, token := c.live[id], c.r.Int32N(90)
	if err := c.e.Commit(id, token); errors.Is(err, engine.ErrFull) {
		c.e.Remove(id)
		delete(c.live, id)
		return
	} else if err != nil {
		c.Fatal(err)
	}
	q.tokens, q.ready, q.draft = append(q.tokens, token), false, speculate.Tree{}
	if d := c.e.Options().Draft; d > 0 && c.r.IntN(4) > 0 {
		q.draft = c.tree(c.r.IntN(d + 1))
		c.must(c.e.Propose(id, q.draft))
	}
}

// round makes one step and whatever may happen between two.
func (c *crowd) round(busy bool) {
	for busy && c.r.IntN(3) > 0 {
		c.add()
	}
	results, err := c.e.Infer(c.Context())
	if err != nil && !errors.Is(err, errInjected) {
		c.Fatal(err)
	}
	for _, res := range results {
		c.take(res)
	}
	for _, res := range results {
		if q := c.live[res.ID]; q.ready && c.r.IntN(5) > 0 {
			c.advance(res.ID)
		}
	}
	for _, id := range c.ids() {
		q := c.live[id]
		switch n := c.r.IntN(60); {
		case q.paused && n < 20:
			if err := c.e.Resume(id); err == nil {
				q.paused = false
			}
		case !q.paused && n == 0:
			c.e.Suspend(id)
			q.paused = true
		case n == 1:
			c.e.Remove(id)
			delete(c.live, id)
		case q.ready && !q.paused && n < 30 && !slices.ContainsFunc(results, func(r engine.Result) bool { return r.ID == id }):
			q.draft = speculate.Tree{} // preemption may have discarded it
			c.advance(id)
		}
	}
}

// TestCells runs random sequences of a model with fixed-size states: chunks, forks,
// shared prefixes, drafts, rewinds, preemption, suspension and steps that fail. Every
// row must be that of the sequence's own tokens, and no cell may be lost.
func TestCells(t *testing.T) {
	t.Parallel()
	for i, opt := range []engine.Options{
		{MaxSeqs: 4},
		{MaxSeqs: 4, MaxTokens: 50, Prefix: true},
		{MaxSeqs: 6, Draft: 9, MaxTokens: 64},
		{MaxSeqs: 6, Draft: 40, Prefix: true, MaxTokens: 300},
		{MaxSeqs: 8, Draft: 20, Cells: 5, Prefix: true},
		{MaxSeqs: 3, Draft: 5, Cells: 4, Pages: 11, Rewind: 7},
		{MaxSeqs: 8, Draft: 12, Pages: 12, Cells: 6, Prefix: true},
		{MaxSeqs: 8, MaxTokens: 37, Cells: 2},
	} {
		for seed := range uint64(6) {
			dev := &recurrence{paged: seed%2 == 0, inFlight: 1 + int(seed)/4, r: rand.New(rand.NewPCG(seed, 2))}
			if seed == 2 {
				dev.r = nil
			}
			c := &crowd{T: t, r: rand.New(rand.NewPCG(seed, uint64(i))), live: map[engine.ID]*client{}}
			c.e = open(t, engine.Model{Manifest: recurrenceModel(dev.paged), Device: dev}, opt)
			for range 3 {
				c.bases = append(c.bases, prompt(c.r, 260))
			}
			for range 400 {
				c.round(true)
				if t.Failed() {
					t.Fatalf("options %d, seed %d", i, seed)
				}
			}
			stats := c.e.Stats()
			for _, id := range c.ids() {
				c.e.Remove(id)
			}
			c.e.Drain()
			if s := c.e.Stats(); s.CellsUsed != 0 || s.Used != 0 {
				t.Errorf("options %d, seed %d: %d cells and %d pages were not freed", i, seed, s.CellsUsed, s.Used)
			}
			t.Logf("options %d, seed %d: %d steps, %d tokens, %d drafted, %d accepted, %d preempted, %d of %d prompt tokens reused, %d cells, %d kept, lists of up to %d", i, seed,
				stats.Steps, stats.Tokens, stats.Drafted, stats.Accepted, stats.Preempted, stats.PromptsReused, stats.Prompts, stats.Cells, stats.CellsKept, dev.most)
		}
	}
}
