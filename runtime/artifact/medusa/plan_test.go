package medusa

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPublishedTrees compares the plans of the nine named trees with the buffers
// that the reference's own code makes of them.
func TestPublishedTrees(t *testing.T) {
	raw, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]struct {
		Positions, Indices []int32
		Retrieve           [][]int32
		Mask               [][]int
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if len(Names()) != 9 || len(want) != 9 {
		t.Fatalf("%d trees, the reference has %d", len(Names()), len(want))
	}
	for name, w := range want {
		c, err := Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPlan(c)
		if err != nil {
			t.Fatal(err)
		}
		if p.Nodes() != 63 {
			t.Errorf("%s: %d nodes", name, p.Nodes())
		}
		if got := append([]int32{0}, p.Depth...); !slices.Equal(got, w.Positions) {
			t.Errorf("%s: positions %v, want %v", name, got, w.Positions)
		}
		if got := p.Indices(10); !slices.Equal(got, w.Indices) {
			t.Errorf("%s: indices %v, want %v", name, got, w.Indices)
		}
		if got := p.Retrieve(); !slices.EqualFunc(got, w.Retrieve, slices.Equal) {
			t.Errorf("%s: retrieve %v, want %v", name, got, w.Retrieve)
		}
		if got := seen(p); !slices.EqualFunc(got, w.Mask, slices.Equal) {
			t.Errorf("%s: mask %v, want %v", name, got, w.Mask)
		}
	}
}

// seen lists what each token of a plan sees.
func seen(p *Plan) [][]int {
	mask, words := p.Mask()
	out := make([][]int, p.Nodes()+1)
	for t := range out {
		for u := range p.Nodes() + 1 {
			if mask[t*words+u/64]>>(u%64)&1 == 1 {
				out[t] = append(out[t], u)
			}
		}
	}
	return out
}

// trees draws random trees of some hundred nodes, in random order.
func trees(t *rapid.T) Choices {
	c := Choices{}
	for range rapid.IntRange(1, 200).Draw(t, "nodes") {
		var parent []int
		if len(c) > 0 && rapid.Bool().Draw(t, "deeper") {
			parent = c[rapid.IntRange(0, len(c)-1).Draw(t, "parent")]
		}
		path := append(slices.Clone(parent), rapid.IntRange(0, 9).Draw(t, "rank"))
		if !slices.ContainsFunc(c, func(p []int) bool { return slices.Equal(p, path) }) {
			c = append(c, path)
		}
	}
	return c
}

// TestPlan compares plans of random trees with what their paths say: a node sees
// exactly the nodes whose paths begin its own.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := trees(t)
		p, err := NewPlan(c)
		if err != nil {
			t.Fatal(err)
		}
		nodes := Sorted(c)
		got := seen(p)
		for i, path := range nodes {
			var want []int
			want = append(want, 0)
			for j, other := range nodes {
				if len(other) <= len(path) && slices.Equal(path[:len(other)], other) {
					want = append(want, j+1)
				}
			}
			if !slices.Equal(got[i+1], want) {
				t.Fatalf("node %v sees %v, want %v", path, got[i+1], want)
			}
			if int(p.Depth[i]) != len(path) || int(p.Rank[i]) != path[len(path)-1] {
				t.Fatalf("node %v: depth %d, rank %d", path, p.Depth[i], p.Rank[i])
			}
		}
		checkRetrieve(t, nodes, p.Retrieve())
	})
}

// checkRetrieve: every path to a leaf is there once, and nothing else.
func checkRetrieve(t *rapid.T, nodes Choices, got [][]int32) {
	leaves := 0
	for i, path := range nodes {
		if slices.ContainsFunc(nodes, func(o []int) bool { return len(o) > len(path) && slices.Equal(o[:len(path)], path) }) {
			continue
		}
		leaves++
		want := []int32{0}
		for d := range path {
			at := slices.IndexFunc(nodes, func(o []int) bool { return slices.Equal(o, path[:d+1]) })
			want = append(want, int32(at+1))
		}
		for len(want) <= nodes.Depth() {
			want = append(want, -1)
		}
		if !slices.ContainsFunc(got, func(g []int32) bool { return slices.Equal(g, want) }) {
			t.Fatalf("leaf %d %v: no path %v in %v", i, path, want, got)
		}
	}
	if len(got) != leaves {
		t.Fatalf("%d paths, %d leaves", len(got), leaves)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		in   any
		want string
	}{
		{[]any{1, 2, 2}, "[[0] [1] [0 0] [0 1] [1 0] [1 1]]"},
		{[]any{1, 3}, "[[0] [1] [2]]"},
		{[]any{[]any{0, 0}, []any{0}, []any{1}}, "[[0] [1] [0 0]]"},
	} {
		got, err := Parse(c.in)
		if err != nil || fmt.Sprint([][]int(got)) != c.want {
			t.Errorf("%v: %v, %v, want %s", c.in, got, err, c.want)
		}
	}
	dense, err := Parse([]any{1, 7, 6})
	if err != nil || len(dense) != 49 {
		t.Errorf("[1, 7, 6] has %d nodes, %v", len(dense), err)
	}
	for _, c := range []struct {
		in   any
		want string
	}{
		{"vicuna_7b_stage", "did you mean vicuna_7b_stage1"},
		{[]any{}, "an empty list"},
		{[]any{2, 3}, "want 1 for the model's own token"},
		{[]any{1, 0}, "too many nodes, or none"},
		{[]any{1, 200, 200}, "too many nodes, or none"},
		{[]any{1, "x"}, "want an integer"},
		{[]any{[]any{0}, 1}, "want a path"},
		{[]any{[]any{0}, []any{1, 0}}, "its parent [1] is not there"},
		{[]any{[]any{0}, []any{0}}, "is there twice"},
		{[]any{[]any{}}, "an empty path"},
		{[]any{[]any{-1}}, "rank -1"},
		{[]any{[]any{300}}, "rank 300"},
		{3, "want a tree's name"},
	} {
		if _, err := Parse(c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.in, err, c.want)
		}
	}
}
