//go:build unix

package devicetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// A client is a sequence of a Crowd.
type client struct {
	tokens []int32 // all, computed or not
	draft  speculate.Tree
	ready  bool // its last result was ready, and nothing was committed since
	paused bool
	forked bool
	load   int // its adapter is the load-th that was loaded; 0: it has none
}

// A Crowd is the clients of an engine, which do at random what clients may do: prompts
// that share prefixes, drafts of which a part is accepted, forks, rewinds, suspension,
// adapters that are loaded and unloaded.
type Crowd struct {
	*testing.T
	Engine *engine.Engine
	Vocab  int32
	// Check reports whether a row of the first output follows these tokens.
	Check    func(tokens []int32, row []float32) bool
	Injected error // an error of a step that the engine survives; may be nil
	Adapters bool  // the engine's device is an Adapters

	r     *rand.Rand
	bases [][]int32 // of which prompts start with a part
	live  map[engine.ID]*client

	loaded []loaded
	loads  int
}

// A loaded is an adapter of a Crowd.
type loaded struct {
	adapter *engine.Adapter
	load    int
}

// Start draws the prefixes that prompts share, up to n tokens.
func (c *Crowd) Start(r *rand.Rand, n int) {
	c.r, c.live = r, map[engine.ID]*client{}
	for range 3 {
		c.bases = append(c.bases, c.tokens(n))
	}
}

// End removes all clients and checks that the engine frees what they used.
func (c *Crowd) End() {
	for _, id := range c.ids() {
		c.Engine.Remove(id)
	}
	c.Engine.Drain()
	for len(c.loaded) > 0 {
		c.unload()
	}
	if s := c.Engine.Stats(); s.CellsUsed != 0 || s.Used != 0 || s.Adapters != 0 || s.AdapterBytes != 0 {
		c.Errorf("%d cells, %d pages and %d adapters of %d bytes were not freed", s.CellsUsed, s.Used, s.Adapters, s.AdapterBytes)
	}
}

func (c *Crowd) tokens(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = c.r.Int32N(c.Vocab)
	}
	return out
}

func (c *Crowd) must(err error) {
	if err != nil {
		c.Helper()
		c.Fatal(err)
	}
}

// ids lists the live clients in a fixed order.
func (c *Crowd) ids() (list []engine.ID) {
	for id := range c.live {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// add adds a query with a prompt of a shared and an own part.
func (c *Crowd) add() {
	base := c.bases[c.r.IntN(len(c.bases))]
	base = base[:c.r.IntN(len(base)+1)]
	p := slices.Concat(base, c.tokens(1+c.r.IntN(min(40, c.Engine.Options().Context-len(base)-1))))
	var with loaded
	if n := len(c.loaded); n > 0 && c.r.IntN(4) > 0 {
		with = c.loaded[c.r.IntN(n)]
	}
	id, err := c.Engine.AddQuery(engine.Query{Tokens: p, Last: c.r.IntN(4), PrefixScope: fmt.Sprint(c.r.IntN(8) / 7), Adapter: with.adapter})
	if errors.Is(err, engine.ErrBusy) {
		return
	}
	c.must(err)
	c.live[id] = &client{tokens: p, load: with.load}
}

// load loads an adapter.
func (c *Crowd) load() {
	x, err := c.Engine.LoadAdapter(&lora.Packed{}, adapterBytes)
	c.must(err)
	c.loads++
	c.loaded = append(c.loaded, loaded{x, c.loads})
}

// adapterBytes is the memory of an adapter of a Crowd.
const adapterBytes = 1000

// unload unloads an adapter, which sequences may use.
func (c *Crowd) unload() {
	at := c.r.IntN(len(c.loaded))
	c.must(c.Engine.UnloadAdapter(c.loaded[at].adapter))
	c.loaded = slices.Delete(c.loaded, at, at+1)
}

// take checks a result.
func (c *Crowd) take(res engine.Result) {
	q := c.live[res.ID]
	if q == nil || q.paused {
		c.Fatalf("a result of %d, which is removed or suspended", res.ID)
	}
	for i := range res.Rows {
		if !c.Check(Shifted(q.tokens[:res.First+i+1], q.load), res.Row(0, i)) {
			c.Fatalf("sequence %d: the row of token %d of %d differs", res.ID, res.First+i, len(q.tokens))
		}
	}
	if q.ready = res.Ready; !q.ready {
		return
	}
	q.draft = q.draft.Cut(res.Drafted)
	paths := make([][]int32, res.Drafted)
	for i, p := range q.draft.Parent {
		before := q.tokens
		if p >= 0 {
			before = paths[p]
		}
		paths[i] = append(slices.Clone(before), q.draft.Tokens[i])
		if !c.Check(Shifted(paths[i], q.load), res.Node(0, i)) {
			c.Fatalf("sequence %d of %d tokens: the row of node %d of %d differs", res.ID, len(q.tokens), i, res.Drafted)
		}
	}
}

// path returns a random path in a draft, mostly a long one.
func (c *Crowd) path(t speculate.Tree) (path []int) {
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
func (c *Crowd) tree(n int) (t speculate.Tree) {
	linear := c.r.IntN(2) == 0
	for i := range n {
		p := i - 1
		if !linear && c.r.IntN(3) == 0 {
			p = c.r.IntN(i+1) - 1
		}
		token := c.r.Int32N(c.Vocab)
		for t.Child(p, token) >= 0 {
			token = (token + 1) % c.Vocab
		}
		t.Tokens, t.Parent = append(t.Tokens, token), append(t.Parent, int32(p))
	}
	return t
}

// advance continues a client that is ready.
func (c *Crowd) advance(id engine.ID) {
	q := c.live[id]
	if path := c.path(q.draft); len(path) > 0 {
		c.must(c.Engine.Accept(id, path))
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
	opt := c.Engine.Options()
	if !opt.Prefix && !q.forked && c.r.IntN(6) == 0 {
		n := len(q.tokens) - c.r.IntN(min(len(q.tokens), 1+c.r.IntN(40)))
		c.must(c.Engine.Rewind(id, n))
		q.tokens = slices.Clone(q.tokens[:n])
	}
	if c.r.IntN(30) == 0 || len(q.tokens) > opt.Context-20 {
		c.Engine.Remove(id)
		delete(c.live, id)
		return
	}
	c.commit(id)
}

func (c *Crowd) fork(id engine.ID) {
	f, err := c.Engine.Fork(id)
	if errors.Is(err, engine.ErrBusy) {
		return
	}
	c.must(err)
	q := c.live[id]
	q.forked = true
	c.live[f] = &client{tokens: slices.Clone(q.tokens), forked: true, load: q.load}
	c.commit(f)
}

// commit appends a token, and perhaps proposes a draft.
func (c *Crowd) commit(id engine.ID) {
	q, token := c.live[id], c.r.Int32N(c.Vocab)
	if err := c.Engine.Commit(id, token); errors.Is(err, engine.ErrFull) {
		c.Engine.Remove(id)
		delete(c.live, id)
		return
	} else if err != nil {
		c.Fatal(err)
	}
	q.tokens, q.ready, q.draft = append(q.tokens, token), false, speculate.Tree{}
	if d := c.Engine.Options().Draft; d > 0 && c.r.IntN(4) > 0 {
		q.draft = c.tree(c.r.IntN(d + 1))
		c.must(c.Engine.Propose(id, q.draft))
	}
}

// Round makes one step and whatever may happen between two.
func (c *Crowd) Round() {
	if c.Adapters && c.r.IntN(8) == 0 && len(c.loaded) < 6 {
		c.load()
	}
	if len(c.loaded) > 0 && c.r.IntN(12) == 0 {
		c.unload()
	}
	for c.r.IntN(3) > 0 {
		c.add()
	}
	results, err := c.Engine.Infer(c.Context())
	if err != nil && !errors.Is(err, c.Injected) {
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
			if err := c.Engine.Resume(id); err == nil {
				q.paused = false
			}
		case !q.paused && n == 0:
			c.Engine.Suspend(id)
			q.paused = true
		case n == 1:
			c.Engine.Remove(id)
			delete(c.live, id)
		case q.ready && !q.paused && n < 30 && !slices.ContainsFunc(results, func(r engine.Result) bool { return r.ID == id }):
			q.draft = speculate.Tree{} // preemption may have discarded it
			c.advance(id)
		}
	}
}
