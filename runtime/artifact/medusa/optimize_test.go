package medusa

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func measured(rng *rand.Rand, heads int) Accuracy {
	a := Accuracy{}
	for range heads {
		rest, ranks := 1.0, []float64{}
		for range 3 {
			p := rest * rng.Float64() * 0.7
			ranks = append(ranks, p)
			rest -= p
		}
		slices.SortFunc(ranks, func(a, b float64) int {
			if a > b {
				return -1
			}
			return 1
		})
		a = append(a, ranks)
	}
	return a
}

// TestOptimize compares with the best of all trees of up to four nodes: the greedy tree
// has the most accepted tokens of its size.
func TestOptimize(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		a := measured(rng, 3)
		best := map[int]float64{}
		every(a, nil, candidates(a), func(c Choices) {
			best[len(c)] = max(best[len(c)], a.Expected(c))
		})
		for n := 1; n <= 4; n++ {
			tree := Optimize(a, n, func(accepted float64, _ int) float64 { return accepted })
			if err := tree.Check(); err != nil {
				t.Fatal(err)
			}
			if got := a.Expected(tree); math.Abs(got-best[n]) > 1e-12 {
				t.Fatalf("%d nodes: %v expects %g, the best of all trees %g", n, tree, got, best[n])
			}
			p, err := NewPlan(tree)
			if err != nil {
				t.Fatal(err)
			}
			if got := a.ExpectedOf(p); math.Abs(got-best[n]) > 1e-12 {
				t.Fatalf("the plan of %v expects %g, the tree %g", tree, got, best[n])
			}
		}
	}
}

// candidates are all paths over the best three candidates of two heads.
func candidates(a Accuracy) Choices {
	var c Choices
	for i := range 3 {
		c = append(c, []int{i})
		for j := range 3 {
			c = append(c, []int{i, j})
			for k := range 3 {
				c = append(c, []int{i, j, k})
			}
		}
	}
	return Sorted(c)
}

// every visits the trees of up to four nodes that extend a tree.
func every(a Accuracy, tree, rest Choices, visit func(Choices)) {
	visit(tree)
	if len(tree) == 4 {
		return
	}
	for i, path := range rest {
		grown := append(slices.Clone(tree), path)
		if len(path) == 1 || slices.ContainsFunc(tree, func(p []int) bool { return slices.Equal(p, path[:len(path)-1]) }) {
			every(a, grown, rest[i+1:], visit)
		}
	}
}

// TestOptimizeDeclines checks that there is no tree if a step's time grows as fast as
// its gain, and a wide one if it does not grow.
func TestOptimizeDeclines(t *testing.T) {
	a := Accuracy{{0.5, 0.2, 0.1}, {0.4, 0.2, 0.1}}
	rate := func(slope float64) func(float64, int) float64 {
		return func(accepted float64, nodes int) float64 { return (1 + accepted) / (1 + slope*float64(nodes)) }
	}
	if tree := Optimize(a, 63, rate(0.6)); len(tree) != 0 {
		t.Errorf("%v where each node costs more than it brings", tree)
	}
	if tree := Optimize(a, 63, rate(0.3)); len(tree) != 1 {
		t.Errorf("%v where the first node alone pays", tree)
	}
	if tree := Optimize(a, 63, rate(0)); len(tree) != 3+9 {
		t.Errorf("%d nodes where they are free, want all", len(tree))
	}
	if tree := Optimize(nil, 63, rate(0)); len(tree) != 0 {
		t.Errorf("%v of no heads", tree)
	}
}
