package medusa

// An Accuracy tells how often the guess of rank r of head i is the token, given
// that the guesses of the heads before it were: Accuracy[i][r]. Guesses of
// different heads are taken as independent, as the reference does when it makes
// its trees.
type Accuracy [][]float64

// Expected is how many tokens of a tree are accepted on average: the sum over
// its nodes of how likely their paths are.
func (a Accuracy) Expected(c Choices) float64 {
	sum := 0.0
	for _, path := range c {
		sum += a.path(path)
	}
	return sum
}

// ExpectedOf is Expected of a tree that is laid out.
func (a Accuracy) ExpectedOf(p *Plan) float64 {
	sum := 0.0
	reach := make([]float64, p.Nodes())
	for i, parent := range p.Parent {
		head, rank := int(p.Depth[i])-1, int(p.Rank[i])
		if head < len(a) && rank < len(a[head]) {
			reach[i] = a[head][rank]
		}
		if parent >= 0 {
			reach[i] *= reach[parent]
		}
		sum += reach[i]
	}
	return sum
}

// path is how likely a path is accepted.
func (a Accuracy) path(path []int) float64 {
	p := 1.0
	for head, rank := range path {
		if head >= len(a) || rank >= len(a[head]) {
			return 0
		}
		p *= a[head][rank]
	}
	return p
}

// Optimize grows the tree of which the most tokens a unit of time are expected:
// rate says what a step brings that has so many nodes, of which so many are
// accepted on average. The most probable node is added, as long as there are nodes,
// and the best of the trees on the way is the result; where no tree is better
// than none, it is empty. most bounds the nodes.
func Optimize(a Accuracy, most int, rate func(accepted float64, nodes int) float64) Choices {
	var tree Choices
	var front []candidate
	front = grow(front, a, nil, 1)
	best, at, accepted := rate(0, 0), 0, 0.0
	for len(tree) < min(most, MaxNodes) && len(front) > 0 {
		pick := 0
		for i, c := range front {
			if c.p > front[pick].p {
				pick = i
			}
		}
		c := front[pick]
		if c.p <= 0 {
			break
		}
		front = append(front[:pick], front[pick+1:]...)
		tree = append(tree, c.path)
		accepted += c.p
		if r := rate(accepted, len(tree)); r > best {
			best, at = r, len(tree)
		}
		front = sibling(front, a, c)
		front = grow(front, a, c.path, c.p)
	}
	return Sorted(tree[:at])
}

// A candidate is a node that may be added next.
type candidate struct {
	path []int
	p    float64
}

// grow adds the best guess behind a path of probability p. Ranks are tried in
// the order of the list: a head's guesses are sorted, so that a later one is not
// more likely.
func grow(front []candidate, a Accuracy, path []int, p float64) []candidate {
	head := len(path)
	if head >= len(a) || len(a[head]) == 0 {
		return front
	}
	next := append(append([]int(nil), path...), 0)
	return append(front, candidate{next, p * a[head][0]})
}

// sibling adds the next guess of the same head behind the same parent.
func sibling(front []candidate, a Accuracy, c candidate) []candidate {
	head := len(c.path) - 1
	rank := c.path[head] + 1
	if rank >= len(a[head]) || a[head][rank-1] == 0 {
		return front
	}
	next := append([]int(nil), c.path...)
	next[head] = rank
	return append(front, candidate{next, c.p / a[head][rank-1] * a[head][rank]})
}
