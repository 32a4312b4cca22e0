package medusa

import (
	"fmt"
	"slices"
)

// A Plan is the layout of a tree in a step: node i is token i+1 of the step, the root
// is token 0. It is computed when the model is compiled.
type Plan struct {
	Parent []int32 `json:"parent"` // parent of each node; -1: the root
	Rank   []int32 `json:"rank"`   // rank of the node among its head's candidates, from 0
	Depth  []int32 `json:"depth"`  // distance from the root, from 1: the node's position minus the root's, and its head's index plus 1
}

// NewPlan returns the layout of a tree, with nodes in the order of Sorted.
func NewPlan(c Choices) (*Plan, error) {
	if err := Sorted(c).Check(); err != nil {
		return nil, err
	}
	p := &Plan{}
	at := map[string]int32{"[]": -1}
	for i, path := range Sorted(c) {
		at[fmt.Sprint(path)] = int32(i)
		p.Parent = append(p.Parent, at[fmt.Sprint(path[:len(path)-1])])
		p.Rank = append(p.Rank, int32(path[len(path)-1]))
		p.Depth = append(p.Depth, int32(len(path)))
	}
	return p, nil
}

// Nodes returns the number of nodes without the root.
func (p *Plan) Nodes() int { return len(p.Parent) }

// Mask returns the tree attention mask: bit u of the words from t·words on is set if
// token t attends to token u. A token attends to itself, its ancestors and the root.
func (p *Plan) Mask() (mask []uint64, words int) {
	n := p.Nodes() + 1
	words = (n + 63) / 64
	mask = make([]uint64, n*words)
	for t := range n {
		row := mask[t*words:][:words]
		if t > 0 { // the parent's row is complete
			copy(row, mask[(int(p.Parent[t-1])+1)*words:][:words])
		}
		row[t/64] |= 1 << (t % 64)
	}
	return mask, words
}

// Retrieve lists the paths from the root to each leaf. A token is given by its index in
// the step: 0 is the root. Paths are padded with -1 to equal length. The paths are in the order of
// the reference implementation, from the last leaf to the first.
func (p *Plan) Retrieve() [][]int32 {
	inner := make([]bool, p.Nodes())
	longest := int32(0)
	for i, parent := range p.Parent {
		if parent >= 0 {
			inner[parent] = true
		}
		longest = max(longest, p.Depth[i])
	}
	var out [][]int32
	for leaf := p.Nodes() - 1; leaf >= 0; leaf-- {
		if inner[leaf] {
			continue
		}
		var path []int32
		for at := int32(leaf); at >= 0; at = p.Parent[at] {
			path = append(path, at+1)
		}
		path = append(path, 0)
		slices.Reverse(path)
		for int32(len(path)) <= longest {
			path = append(path, -1)
		}
		out = append(out, path)
	}
	return out
}

// Indices returns the reference implementation's tree_indices: for each token of the
// step, its index in the list of the root's token followed by the top candidates of
// each head.
func (p *Plan) Indices(top int) []int32 {
	out := []int32{0}
	for i, rank := range p.Rank {
		out = append(out, 1+(p.Depth[i]-1)*int32(top)+rank)
	}
	return out
}
