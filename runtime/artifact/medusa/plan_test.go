package medusa

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// seen lists the tokens that each token of a plan attends to.
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

// trees returns random trees of some hundred nodes, in random order.
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

// TestPlan compares plans of random trees with their paths: a node attends to exactly
// the nodes with paths that are prefixes of its own.
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

// checkRetrieve checks that every path to a leaf is listed once, and nothing else.
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
