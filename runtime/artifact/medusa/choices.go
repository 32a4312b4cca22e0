// Package medusa implements the trees of Medusa (Cai et al. 2024, arXiv:2401.10774):
// their nodes, the typical acceptance rule, and the choice of a tree by accuracies and
// step times. It does not depend on the model or the engine.
package medusa

import (
	"fmt"
	"slices"
)

// Choices lists the nodes of a tree by their paths from the root: [0, 3] is the
// candidate of rank 3 of head 1 after the best candidate of head 0. The root, the token
// that the model chose, is not listed.
type Choices [][]int

// Limits of a tree.
const (
	MaxNodes = 1023
	MaxRank  = 255
)

// Sorted returns the nodes ordered by depth and then by ranks, as in the reference
// implementation. Parents precede their children.
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

// Check returns an error for duplicate nodes, missing parents, and ranks or sizes
// beyond the limits.
func (c Choices) Check() error {
	if len(c) > MaxNodes {
		return fmt.Errorf("%d nodes; expected at most %d", len(c), MaxNodes)
	}
	seen := map[string]bool{"[]": true}
	for _, path := range c {
		if len(path) == 0 {
			return fmt.Errorf("empty path; leave out the root")
		}
		for _, rank := range path {
			if rank < 0 || rank > MaxRank {
				return fmt.Errorf("path %v: rank %d; expected 0 to %d", path, rank, MaxRank)
			}
		}
		if seen[fmt.Sprint(path)] {
			return fmt.Errorf("duplicate path %v", path)
		}
		if !seen[fmt.Sprint(path[:len(path)-1])] {
			return fmt.Errorf("path %v: its parent %v is missing", path, path[:len(path)-1])
		}
		seen[fmt.Sprint(path)] = true
	}
	return nil
}

// Depth returns the length of the longest path, the number of heads that the tree uses.
func (c Choices) Depth() int {
	d := 0
	for _, path := range c {
		d = max(d, len(path))
	}
	return d
}
