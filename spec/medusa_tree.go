package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/medusa"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// treeNames returns the names of the published trees, sorted.
func treeNames() []string { return slices.Sorted(maps.Keys(publishedTrees)) }

// parseTree parses the draft tree of a model spec. The value is the name of a
// published tree, a list of paths, or a list of candidate counts per head such as
// [1, 7, 6]. The first count is that of the model's own token and must be 1. The
// nodes are returned in the order of medusa.Sorted.
func parseTree(v any) (medusa.Choices, error) {
	switch v := v.(type) {
	case string:
		text, ok := publishedTrees[v]
		if !ok {
			return nil, fmt.Errorf("unknown tree %q; known: %s%s", v, strings.Join(treeNames(), ", "), treeHint(v))
		}
		return medusa.Sorted(pathDigits(text)), nil
	case []any:
		if len(v) == 0 {
			return nil, fmt.Errorf("empty list; want paths or candidates per head")
		}
		if _, dense := v[0].(int); dense {
			counts, err := pathInts(v)
			if err != nil {
				return nil, err
			}
			return denseTree(counts)
		}
		return treePaths(v)
	}
	return nil, fmt.Errorf("have %v; want a tree's name, a list of paths, or a list of numbers", v)
}

// pathDigits parses paths of one-digit ranks.
func pathDigits(text string) medusa.Choices {
	var c medusa.Choices
	for _, word := range strings.Fields(text) {
		var path []int
		for _, digit := range word {
			path = append(path, int(digit-'0'))
		}
		c = append(c, path)
	}
	return c
}

func treeHint(name string) string {
	if n := spelling.Nearest(name, treeNames()); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}

func pathInts(v []any) ([]int, error) {
	var out []int
	for _, x := range v {
		n, ok := x.(int)
		if !ok {
			return nil, fmt.Errorf("have %v, want an integer", x)
		}
		out = append(out, n)
	}
	return out, nil
}

func treePaths(v []any) (medusa.Choices, error) {
	var c medusa.Choices
	for _, x := range v {
		list, ok := x.([]any)
		if !ok {
			return nil, fmt.Errorf("have %v, want a path such as [0, 3]", x)
		}
		path, err := pathInts(list)
		if err != nil {
			return nil, err
		}
		c = append(c, path)
	}
	c = medusa.Sorted(c)
	return c, c.Check()
}

// denseTree combines the best counts[i+1] candidates of each head i with those of
// all other heads: [1, 7, 6] has 7 + 7·6 nodes.
func denseTree(counts []int) (medusa.Choices, error) {
	if len(counts) < 2 || counts[0] != 1 {
		return nil, fmt.Errorf("have %v, want 1 for the model's own token and then the candidates of each head, as in [1, 7, 6]", counts)
	}
	var c medusa.Choices
	level := [][]int{nil}
	for _, n := range counts[1:] {
		if n < 1 || n > medusa.MaxRank+1 || len(level)*n > medusa.MaxNodes {
			return nil, fmt.Errorf("%v: too many nodes, or none at some depth; want at most %d nodes", counts, medusa.MaxNodes)
		}
		var next [][]int
		for _, path := range level {
			for rank := range n {
				next = append(next, append(slices.Clone(path), rank))
			}
		}
		c, level = append(c, next...), next
	}
	return c, c.Check()
}
