package medusa

// An Accuracy holds conditional probabilities: Accuracy[i][r] is the probability that
// the candidate of rank r of head i is correct if those of the heads before it are.
// Heads are treated as independent, as in the reference implementation.
type Accuracy [][]float64

// Expected returns the expected number of accepted tokens: the sum over the nodes of
// the probabilities of their paths.
func (a Accuracy) Expected(c Choices) float64 {
	sum := 0.0
	for _, path := range c {
		sum += a.path(path)
	}
	return sum
}

// ExpectedOf is Expected for a Plan.
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

// path returns the probability that a path is accepted.
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

// Optimize returns the tree that maximizes rate, with at most limit nodes. rate returns
// the expected tokens per unit of time of a step with the given number of nodes, of
// which the given number are accepted on average. Optimize adds the most probable node
// repeatedly and returns the best of these trees, or an empty one if none is better
// than no tree.
func Optimize(a Accuracy, limit int, rate func(accepted float64, nodes int) float64) Choices {
	var tree Choices
	var front []candidate
	front = grow(front, a, nil, 1)
	best, at, accepted := rate(0, 0), 0, 0.0
	for len(tree) < min(limit, MaxNodes) && len(front) > 0 {
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

// grow adds the best candidate after a path of probability p. A head's candidates are
// sorted, so later ranks are not more probable.
func grow(front []candidate, a Accuracy, path []int, p float64) []candidate {
	head := len(path)
	if head >= len(a) || len(a[head]) == 0 {
		return front
	}
	next := append(append([]int(nil), path...), 0)
	return append(front, candidate{next, p * a[head][0]})
}

// sibling adds the next candidate of the same head after the same parent.
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
