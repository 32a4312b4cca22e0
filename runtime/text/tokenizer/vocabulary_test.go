package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestVocabulary compares the packed tables with maps for dense lists, holes, ids in
// any order, repeated tokens and ids, and the empty token.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 8))
	for round := range 300 {
		n := r.IntN(200)
		list := make([]Entry, n)
		for i := range list {
			list[i] = Entry{fmt.Sprint(r.IntN(2*n + 1)), int32(i)}
			if round%2 == 1 {
				list[i].ID = r.Int32N(int32(3*n) + 1)
			}
			if r.IntN(40) == 0 {
				list[i].Token = ""
			}
		}
		v, err := newVocabulary(list)
		if err != nil {
			t.Fatal(err)
		}
		ids, tokens, size := map[string]int32{}, map[int32]string{}, 0
		for _, e := range list {
			ids[e.Token], tokens[e.ID], size = e.ID, e.Token, max(size, int(e.ID)+1)
		}
		if v.count != len(ids) || v.size() != size || !slices.Equal(slices.Collect(v.entries()), list) {
			t.Fatalf("%d tokens of %d, ids below %d of %d, or another list", v.count, len(ids), v.size(), size)
		}
		for id := range int32(size) {
			if v.token(id) != tokens[id] {
				t.Fatalf("token %d is %q, want %q", id, v.token(id), tokens[id])
			}
		}
		for i := range 3 * n {
			token := fmt.Sprint(i)
			want, known := ids[token]
			if id, ok := v.id(token); ok != known || id != want {
				t.Fatalf("%q has id %d, %v; want %d, %v", token, id, ok, want, known)
			}
		}
	}
	if _, err := newVocabulary([]Entry{{"a", 1 << 30}}); err == nil {
		t.Error("an id far beyond the list is accepted")
	}
}

// TestMergeTable compares the table with a map.
func TestMergeTable(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 6))
	for range 200 {
		n := r.IntN(300)
		merges, ranks, want := make([]Merge, n), make([]int32, n), map[[2]int32]mergeRule{}
		for i := range merges {
			merges[i] = Merge{r.Int32N(20), r.Int32N(20), r.Int32N(99)}
			ranks[i] = int32(i / 3)
			want[[2]int32{merges[i].Left, merges[i].Right}] = mergeRule{ranks[i], merges[i].Into}
		}
		table := newMergeTable(merges, ranks)
		for left := range int32(21) {
			for right := range int32(21) {
				rule, ok := table.find(left, right)
				if w, known := want[[2]int32{left, right}]; ok != known || rule != w {
					t.Fatalf("%d + %d: %v, %v; want %v, %v", left, right, rule, ok, w, known)
				}
			}
		}
	}
}
