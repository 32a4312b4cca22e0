//go:build unix

package engine_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// recurrent opens an engine on a model that has only fixed-size states.
func recurrent(t *testing.T, opt engine.Options) *engine.Engine {
	t.Helper()
	return open(t, engine.Model{Manifest: recurrenceModel(false), Device: &recurrence{}}, opt)
}

// decodeAll adds a query, checks its result and decodes n more tokens. It returns the query's
// id, its tokens and how many of them the prefix cache had.
func decodeAll(t *testing.T, e *engine.Engine, tokens []int32, n int) (id engine.ID, all []int32, cached int) {
	t.Helper()
	id, err := e.AddQuery(engine.Query{Tokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	for all = slices.Clone(tokens); ; n-- {
		res := ready(t, e)
		if !isHash(res.Row(0, 0), hashOf(all)) {
			t.Fatalf("the row after %d tokens differs", len(all))
		}
		if cached = res.Cached; n == 0 {
			return id, all, cached
		}
		all = append(all, int32(n%50))
		if err := e.Commit(id, all[len(all)-1]); err != nil {
			t.Fatal(err)
		}
	}
}

// ready runs steps until the only sequence is ready.
func ready(t *testing.T, e *engine.Engine) engine.Result {
	t.Helper()
	for {
		results, err := e.Infer(t.Context())
		if err != nil || len(results) != 1 {
			t.Fatal(len(results), err)
		}
		if results[0].Ready {
			return results[0]
		}
	}
}

// TestCellPrefix checks where sequences of a model with fixed-size states continue.
func TestCellPrefix(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	shared := prompt(r, 200)
	e := recurrent(t, engine.Options{Prefix: true, Pages: 40})
	with := func(n int) []int32 { return slices.Concat(shared[:150], prompt(r, n)) }
	for _, c := range []struct {
		name   string
		tokens []int32
		want   int
	}{
		{"the first prompt", shared, 0},
		{"the same prompt", shared, 192},
		{"a continuation", slices.Concat(shared, prompt(r, 50)), 192},
		{"the second prompt with a prefix", with(60), 0}, // only pages are cached there
		{"the third", with(80), 128},
		{"the fourth", with(3), 128},
		{"a prompt of whole pages", shared[:192], 128},
	} {
		id, _, cached := decodeAll(t, e, c.tokens, 0)
		if e.Remove(id); cached != c.want {
			t.Errorf("%s: %d tokens cached, want %d", c.name, cached, c.want)
		}
	}
	before := e.Stats().CellsKept
	id, all, _ := decodeAll(t, e, prompt(r, 100), 300)
	e.Remove(id)
	if s := e.Stats(); s.CellsKept != min(before+2, s.Cells) || s.CellsUsed != 0 {
		t.Errorf("%d cells are kept after %d; expected 2 more: where the prompt and where the answer ends", s.CellsKept, before)
	}
	if _, _, cached := decodeAll(t, e, append(all, 1, 2, 3), 0); cached != 384 {
		t.Errorf("the next turn found %d tokens, expected 384", cached)
	}
}

// TestEvictedCells checks that the least recently used cells are evicted, and that a
// cell does not outlive its page.
func TestEvictedCells(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 3))
	e := recurrent(t, engine.Options{Prefix: true, Cells: 4, Pages: 9, Context: 576})
	first, second := prompt(r, 70), prompt(r, 70)
	for _, tokens := range [][]int32{first, second, prompt(r, 70), first, prompt(r, 70), prompt(r, 70)} {
		id, _, _ := decodeAll(t, e, tokens, 0)
		e.Remove(id)
	}
	for _, c := range []struct {
		tokens []int32
		want   int
	}{{first, 64}, {second, 0}} {
		id, _, cached := decodeAll(t, e, c.tokens, 0)
		if e.Remove(id); cached != c.want {
			t.Errorf("%d tokens cached, expected %d", cached, c.want)
		}
	}
	id, _, _ := decodeAll(t, e, prompt(r, 570), 0) // takes all pages
	e.Remove(id)
	if s := e.Stats(); s.CellsKept != 1 {
		t.Errorf("%d cells are kept, expected the one of the last prompt", s.CellsKept)
	}
}

// TestCellOfTree accepts a path of a tree that passes the end of a page, and ends the
// sequence before the start of the last cell in this page is stored.
func TestCellOfTree(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	e := recurrent(t, engine.Options{Prefix: true, Draft: 60})
	id, all, _ := decodeAll(t, e, prompt(r, 39), 0)
	tree := speculate.Tree{Tokens: []int32{9}, Parent: []int32{-1}}
	var path []int
	for i := range 40 {
		path = append(path, i+1)
		tree.Tokens, tree.Parent = append(tree.Tokens, int32(10+i)), append(tree.Parent, int32(i))
	}
	tree.Parent[1] = -1
	if err := e.Commit(id, 5); err != nil {
		t.Fatal(err)
	}
	if err := e.Propose(id, tree); err != nil {
		t.Fatal(err)
	}
	if res := ready(t, e); res.Drafted != tree.Len() {
		t.Fatalf("%d nodes of %d", res.Drafted, tree.Len())
	}
	if err := e.Accept(id, path); err != nil {
		t.Fatal(err)
	}
	e.Remove(id)
	all = slices.Concat(all, []int32{5}, tree.Tokens[1:])
	if _, _, cached := decodeAll(t, e, all, 0); cached != 0 {
		t.Errorf("%d tokens cached by a cell without a start", cached)
	}
}

// TestRewindCells counts the tokens that are computed again after Rewind.
func TestRewindCells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rewind, from, to, want int }{{0, 106, 100, 1}, {0, 106, 94, 95}, {12, 106, 94, 1}, {12, 97, 96, 1}} {
		e := recurrent(t, engine.Options{Rewind: c.rewind})
		id, all, _ := decodeAll(t, e, prompt(rand.New(rand.NewPCG(1, 2)), 60), c.from-60)
		if err := e.Rewind(id, c.to); err != nil {
			t.Fatal(err)
		}
		if err := e.Commit(id, 7); err != nil {
			t.Fatal(err)
		}
		before := e.Stats().Tokens
		if res := ready(t, e); !isHash(res.Row(0, 0), hashOf(append(all[:c.to:c.to], 7))) {
			t.Errorf("%+v: the row differs", c)
		}
		if n := int(e.Stats().Tokens - before); n != c.want {
			t.Errorf("%+v: %d tokens were computed", c, n)
		}
	}
}
