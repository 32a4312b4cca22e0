package speculate

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/artifact/medusa"
)

// TestLargest compares with a sort.
func TestLargest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		row := make([]float32, 1+rng.IntN(40))
		for i := range row {
			row[i] = float32(rng.IntN(12))
		}
		n := 1 + rng.IntN(12)
		got, _ := largest(nil, nil, row, n)
		want := make([]int32, len(row))
		for i := range want {
			want[i] = int32(i)
		}
		sort.SliceStable(want, func(a, b int) bool { return row[want[a]] > row[want[b]] })
		if want = want[:min(n, len(want))]; !slices.Equal(got, want) {
			t.Fatalf("%v: %v, want %v", row, got, want)
		}
	}
}

// headsRow returns a row of the heads' output with the given candidates, best first.
func headsRow(columns int, guesses ...[]int32) func(int) []float32 {
	row := make([]float32, columns*len(guesses))
	for h, list := range guesses {
		for r, token := range list {
			row[h*columns+int(token)] = float32(len(list) - r)
		}
	}
	return func(int) []float32 { return row }
}

func newMedusa(m *manifest.Medusa) *Medusa { return NewMedusa(m, 2) }

func free(nodes int) Room { return Room{Nodes: nodes, Time: func(int) float64 { return 1 }} }

// TestMedusaTree checks that a given tree contains the candidates of its paths.
func TestMedusaTree(t *testing.T) {
	plan, err := medusa.NewPlan(medusa.Choices{{0}, {1}, {0, 2}, {1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	d := newMedusa(&manifest.Medusa{Heads: 2, Columns: 8, Tree: plan})
	if got := d.Propose([]int32{1}, free(9)); got.Len() != 0 || !d.Reads() {
		t.Errorf("a draft %v without rows, reads %v", got, d.Reads())
	}
	d.ReadRows(headsRow(8, []int32{5, 3}, []int32{7, 6, 4}))
	got := d.Propose([]int32{1}, free(9))
	if !slices.Equal(got.Tokens, []int32{5, 3, 4, 7}) || !slices.Equal(got.Parent, []int32{-1, -1, 0, 1}) {
		t.Errorf("%v", got)
	}
	if err := got.Check(8); err != nil {
		t.Error(err)
	}
	d.ReadRows(headsRow(8, []int32{5, 3}, []int32{7, 6, 4}))
	if got := d.Propose([]int32{1}, free(2)); got.Len() != 2 {
		t.Errorf("%d nodes where there is room for 2", got.Len())
	}
}

// TestMedusaAdapts checks that the tree grows if heads are right and steps cost nothing
// more, and that tree and heads pause for ever longer times if they are wrong.
func TestMedusaAdapts(t *testing.T) {
	d := newMedusa(&manifest.Medusa{Heads: 2, Columns: 32})
	room := Room{Nodes: 15, Time: func(n int) float64 { return 1 + 0.15*float64(n) }, HeadTime: 0.05}
	d.Propose([]int32{1}, room)
	for range 100 {
		d.Observe([]int32{5, 7, 1})
		d.ReadRows(headsRow(32, []int32{5, 3}, []int32{7, 6}))
		if got := d.Propose([]int32{1}, room); got.Len() == 0 {
			t.Fatal("no draft of heads that are right")
		}
	}
	if got := d.plan; got.Nodes() != 2 || got.Depth[1] != 2 {
		t.Errorf("the tree of heads that are always right is %v", got)
	}
	asleep, read := []int{}, 0
	for range 3000 {
		d.Observe([]int32{31})
		if !d.Reads() {
			if len(asleep) == 0 || read > 0 {
				asleep = append(asleep, 0)
			}
			asleep[len(asleep)-1]++
			read = 0
		} else {
			read++
			d.ReadRows(headsRow(32, []int32{5, 3}, []int32{7, 6}))
		}
		if got := d.Propose([]int32{1}, room); read == 0 && got.Len() > 0 {
			t.Fatal("a draft without rows")
		}
	}
	if len(asleep) < 4 || asleep[0] != backoffFirst || asleep[1] != 2*backoffFirst || slices.Max(asleep) > backoffMax {
		t.Errorf("asleep for %v steps", asleep)
	}
}

// TestMedusaDeclines checks that trees that will not pay, by the measured accuracies,
// are not tried.
func TestMedusaDeclines(t *testing.T) {
	d := newMedusa(&manifest.Medusa{Heads: 1, Columns: 8, Accuracy: medusa.Accuracy{{0.3, 0.1}}})
	d.ReadRows(headsRow(8, []int32{5, 3}))
	dear := Room{Nodes: 15, Time: func(n int) float64 { return 1 + 0.4*float64(n) }}
	if got := d.Propose([]int32{1}, dear); got.Len() != 0 {
		t.Errorf("%v where a node costs 0.4 steps and brings 0.3 tokens", got)
	}
}

// TestMedusaExplores checks that sizes without measurements, also of a given tree, are
// tried if they could pay, and only as long as necessary.
func TestMedusaExplores(t *testing.T) {
	seen := map[int]int{}
	room := Room{Nodes: 15, Time: func(n int) float64 { return 1 + float64(n) }}
	room.Untried = func(n int) bool { return seen[n] < 3 }
	drafts := func(m *manifest.Medusa, n int) {
		d := newMedusa(m)
		for range n {
			d.ReadRows(headsRow(32, []int32{5, 3}, []int32{7, 6}))
			if got := d.Propose([]int32{1}, room); got.Len() > 0 {
				seen[got.Len()]++
			}
		}
	}
	drafts(&manifest.Medusa{Heads: 2, Columns: 32}, 20)
	if len(seen) != 3 || seen[3] != 3 || seen[5] != 3 || seen[7] != 3 {
		t.Errorf("trees by size: %v, want three of 3, 5 and 7 nodes", seen)
	}
	clear(seen)
	drafts(&manifest.Medusa{Heads: 2, Columns: 32, Accuracy: medusa.Accuracy{{0.05}, {0.05}}}, 20)
	if len(seen) > 0 {
		t.Errorf("trees %v of heads that are hardly ever right", seen)
	}
	plan, err := medusa.NewPlan(medusa.Choices{{0}, {1}})
	if err != nil {
		t.Fatal(err)
	}
	drafts(&manifest.Medusa{Heads: 2, Columns: 32, Tree: plan}, 9)
	if seen[2] != medusaRetree {
		t.Errorf("a given tree that does not pay was drafted %d times, want %d", seen[2], medusaRetree)
	}
}
