// Package medusa holds what a tree of guesses of Medusa heads is (Cai et al.
// 2024, arXiv:2401.10774): which guesses of which head are tried, which of
// them to accept, and which tree pays on a machine. It computes on plain
// numbers and knows neither model nor engine.
package medusa

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/iflowc/iflowc/ir/spelling"
)

// Choices are the nodes of a tree, each by its path from the root: [0, 3] is
// the guess of rank 3 of head 1 behind the best guess of head 0. The root, the
// token that the model itself chose, is not among them.
type Choices [][]int

// Limits of a tree that somebody wrote by hand.
const (
	MaxNodes = 1023
	MaxRank  = 255
)

// Names lists the published trees.
func Names() []string {
	var names []string
	for name := range published {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Parse reads a tree as a specification gives it: the name of a published tree;
// a list of paths; or how many guesses of each head are combined with all of the
// others, [1, 7, 6], where the first number is that of the model's own token and
// must be 1. The nodes come out in the order of Sorted.
func Parse(v any) (Choices, error) {
	switch v := v.(type) {
	case string:
		text, ok := published[v]
		if !ok {
			return nil, fmt.Errorf("no tree is called %q; known: %s%s", v, strings.Join(Names(), ", "), hint(v))
		}
		return Sorted(digits(text)), nil
	case []any:
		if len(v) == 0 {
			return nil, fmt.Errorf("an empty list; want paths, or guesses a head")
		}
		if _, dense := v[0].(int); dense {
			counts, err := ints(v)
			if err != nil {
				return nil, err
			}
			return Dense(counts)
		}
		return paths(v)
	}
	return nil, fmt.Errorf("have %v; want a tree's name, a list of paths, or a list of numbers", v)
}

// digits reads paths whose ranks are one digit each.
func digits(text string) Choices {
	var c Choices
	for _, word := range strings.Fields(text) {
		var path []int
		for _, digit := range word {
			path = append(path, int(digit-'0'))
		}
		c = append(c, path)
	}
	return c
}

func hint(name string) string {
	if n := spelling.Nearest(name, Names()); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}

func ints(v []any) ([]int, error) {
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

func paths(v []any) (Choices, error) {
	var c Choices
	for _, x := range v {
		list, ok := x.([]any)
		if !ok {
			return nil, fmt.Errorf("have %v, want a path such as [0, 3]", x)
		}
		path, err := ints(list)
		if err != nil {
			return nil, err
		}
		c = append(c, path)
	}
	c = Sorted(c)
	return c, c.Check()
}

// Dense combines the best counts[i+1] guesses of each head i with all of the
// others: [1, 7, 6] has 7 + 7·6 nodes.
func Dense(counts []int) (Choices, error) {
	if len(counts) < 2 || counts[0] != 1 {
		return nil, fmt.Errorf("have %v, want 1 for the model's own token and then the guesses of each head, as [1, 7, 6]", counts)
	}
	var c Choices
	level := [][]int{nil}
	for _, n := range counts[1:] {
		if n < 1 || n > MaxRank+1 || len(level)*n > MaxNodes {
			return nil, fmt.Errorf("%v has too many nodes, or none at some depth; at most %d are possible", counts, MaxNodes)
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

// Sorted orders nodes by depth and then by ranks, as the reference does; parents
// come before their children.
func Sorted(c Choices) Choices {
	c = slices.Clone(c)
	slices.SortStableFunc(c, func(a, b []int) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return slices.Compare(a, b)
	})
	return c
}

// Check refuses what is no tree: a node twice, one without its parent, a rank or
// a size beyond the limits.
func (c Choices) Check() error {
	if len(c) > MaxNodes {
		return fmt.Errorf("%d nodes, at most %d are possible", len(c), MaxNodes)
	}
	seen := map[string]bool{"[]": true}
	for _, path := range c {
		if len(path) == 0 {
			return fmt.Errorf("an empty path; the root is not listed")
		}
		for _, rank := range path {
			if rank < 0 || rank > MaxRank {
				return fmt.Errorf("path %v: rank %d, want 0 to %d", path, rank, MaxRank)
			}
		}
		if seen[fmt.Sprint(path)] {
			return fmt.Errorf("path %v is there twice", path)
		}
		if !seen[fmt.Sprint(path[:len(path)-1])] {
			return fmt.Errorf("path %v: its parent %v is not there", path, path[:len(path)-1])
		}
		seen[fmt.Sprint(path)] = true
	}
	return nil
}

// Depth is the length of the longest path: how many heads the tree needs.
func (c Choices) Depth() int {
	d := 0
	for _, path := range c {
		d = max(d, len(path))
	}
	return d
}
