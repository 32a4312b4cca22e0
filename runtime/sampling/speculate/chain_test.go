package speculate

import (
	"slices"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// chainModel is an autoregressive draft head of 8 columns. Its best candidate is
// token+1, the second token+2; its state counts the runs.
func chainModel(runs *int, margin float32) ChainRun {
	return func(row, state []float32, token int32) []float32 {
		*runs++
		row = append(row[:0], make([]float32, 9)...)
		row[(token+1)%8], row[(token+2)%8], row[8] = 2*margin, margin, 1
		if state != nil {
			row[8] = state[0] + 1
		}
		return row
	}
}

// TestChainDrafts checks that an accurate head drafts a path of its best candidates up
// to the limit, and that a wrong one stops drafting.
func TestChainDrafts(t *testing.T) {
	runs := 0
	d := NewChain(&manifest.Medusa{Heads: 4, Columns: 8})
	room := Room{Nodes: 15, Time: func(n int) float64 { return 1 + 0.05*float64(n) }, HeadTime: 0.02}
	if got := d.Propose([]int32{3}, room); got.Len() != 0 {
		t.Fatalf("%v without a head", got)
	}
	d.Chain(chainModel(&runs, 8))
	got := d.Propose([]int32{3}, room)
	if err := got.Check(8); err != nil {
		t.Fatal(err)
	}
	node := -1
	for _, token := range []int32{4, 5, 6, 7} {
		if node = got.Child(node, token); node < 0 {
			t.Fatalf("%v does not hold the path 4 5 6 7", got.Tree)
		}
	}
	if runs != 4 {
		t.Errorf("%d runs of the head, want 4", runs)
	}
	for range 300 {
		d.Observe([]int32{7})
		if d.Chain(chainModel(&runs, 8)); d.Propose([]int32{3}, room).Len() == 0 {
			return
		}
	}
	t.Error("a head that is never right drafts on")
}

// TestChainUnsure checks that a head with equally accurate first and second candidates
// drafts both, and nothing after the second.
func TestChainUnsure(t *testing.T) {
	runs := 0
	d := NewChain(&manifest.Medusa{Heads: 2, Columns: 8, Tokens: []int32{10, 11, 12, 13, 14, 15, 16, 17}})
	room := Room{Nodes: 15, Time: func(n int) float64 { return 1 + 0.02*float64(n) }, HeadTime: 0.01}
	head := chainModel(&runs, 0.1)
	twist := func(row, state []float32, token int32) []float32 { return head(row, state, token%8) }
	var got Draft
	for i := range 100 {
		d.Chain(twist)
		if got = d.Propose([]int32{13}, room); got.Len() == 0 {
			t.Fatal("no draft")
		}
		if i%2 == 0 {
			d.Observe([]int32{16}) // token 13 is 5 modulo 8, so the best candidate is column 6
		} else {
			d.Observe([]int32{17, 1})
		}
	}
	first, second := got.Child(-1, 16), got.Child(-1, 17)
	if first < 0 || second < 0 {
		t.Fatalf("%v, want both 16 and 17 behind the last token", got.Tree)
	}
	if slices.Contains(got.Parent, int32(second)) {
		t.Errorf("%v: something stands behind the second guess", got.Tree)
	}
}

// TestChainRooms checks that drafts keep within the room at any cost.
func TestChainRooms(t *testing.T) {
	for nodes := range 6 {
		for _, each := range []float64{0, 0.01, 0.3} {
			runs := 0
			d := NewChain(&manifest.Medusa{Heads: 6, Columns: 8})
			for range 20 {
				d.Chain(chainModel(&runs, 3))
				got := d.Propose([]int32{1}, Room{Nodes: nodes, Time: func(n int) float64 { return 1 + 0.01*float64(n) }, HeadTime: each})
				if err := got.Check(8); err != nil || got.Len() > nodes {
					t.Fatalf("%v of at most %d nodes: %v", got.Tree, nodes, err)
				}
				d.Observe([]int32{2, 3})
			}
		}
	}
}

// TestRests checks that no drafter drafts while drafting is paused.
func TestRests(t *testing.T) {
	runs := 0
	history := []int32{1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3}
	for _, rests := range []bool{false, true} {
		room := free(8)
		room.Paused = rests
		heads, chain := newMedusa(&manifest.Medusa{Heads: 2, Columns: 8}), NewChain(&manifest.Medusa{Heads: 2, Columns: 8})
		for _, d := range []Drafter{NewLookup(), heads, chain} {
			heads.ReadRows(headsRow(8, []int32{5, 3}, []int32{7, 6, 4}))
			chain.Chain(chainModel(&runs, 8))
			if got := d.Propose(history, room); got.Len() > 0 == rests {
				t.Errorf("%T drafts %d tokens where rests is %v", d, got.Len(), rests)
			}
		}
	}
}
