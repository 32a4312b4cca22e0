// Package medusa holds what a tree of guesses of Medusa heads is (Cai et al.
// 2024, arXiv:2401.10774): which guesses of which head are tried, which of
// them to accept, and which tree pays on a machine. It computes on plain
// numbers and knows neither model nor engine.
package medusa

import (
	"fmt"
	"slices"
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
