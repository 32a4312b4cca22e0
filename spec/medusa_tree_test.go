package spec

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/medusa"
)

// TestPublishedTrees compares the plans of the nine published trees with the
// buffers that the reference implementation builds.
func TestPublishedTrees(t *testing.T) {
	raw, err := os.ReadFile("testdata/medusa_trees.json")
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
	if len(treeNames()) != 9 || len(want) != 9 {
		t.Fatalf("%d trees, the reference has %d", len(treeNames()), len(want))
	}
	for name, w := range want {
		c, err := parseTree(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := medusa.NewPlan(c)
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
		if got := treeMask(p); !slices.EqualFunc(got, w.Mask, slices.Equal) {
			t.Errorf("%s: mask %v, want %v", name, got, w.Mask)
		}
	}
}

// treeMask returns the attention mask of a plan, one list of visible tokens per token.
func treeMask(p *medusa.Plan) [][]int {
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

func TestParseTree(t *testing.T) {
	for _, c := range []struct {
		in   any
		want string
	}{
		{[]any{1, 2, 2}, "[[0] [1] [0 0] [0 1] [1 0] [1 1]]"},
		{[]any{1, 3}, "[[0] [1] [2]]"},
		{[]any{[]any{0, 0}, []any{0}, []any{1}}, "[[0] [1] [0 0]]"},
	} {
		got, err := parseTree(c.in)
		if err != nil || fmt.Sprint([][]int(got)) != c.want {
			t.Errorf("%v: %v, %v, want %s", c.in, got, err, c.want)
		}
	}
	dense, err := parseTree([]any{1, 7, 6})
	if err != nil || len(dense) != 49 {
		t.Errorf("[1, 7, 6] has %d nodes, %v", len(dense), err)
	}
	for _, c := range []struct {
		in   any
		want string
	}{
		{"vicuna_7b_stage", "did you mean vicuna_7b_stage1"},
		{[]any{}, "empty list"},
		{[]any{2, 3}, "want 1 for the model's own token"},
		{[]any{1, 0}, "too many nodes, or none"},
		{[]any{1, 200, 200}, "too many nodes, or none"},
		{[]any{1, "x"}, "want an integer"},
		{[]any{[]any{0}, 1}, "want a path"},
		{[]any{[]any{0}, []any{1, 0}}, "its parent [1] is missing"},
		{[]any{[]any{0}, []any{0}}, "duplicate path"},
		{[]any{[]any{}}, "empty path"},
		{[]any{[]any{-1}}, "rank -1"},
		{[]any{[]any{300}}, "rank 300"},
		{3, "want a tree's name"},
	} {
		if _, err := parseTree(c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.in, err, c.want)
		}
	}
}
