package tokenizer

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/ir/irtest"
)

// TestMergeOrder: of all merges that apply to a word the one with the lowest rank is applied
// first, of several such the leftmost, as a search through the whole word finds them.
func TestMergeOrder(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(irtest.Seed(t), 2))
	for range 300 {
		const letters = 3
		var merges []Merge
		for id := int32(letters); id < 14; id++ { // also of what earlier ones make
			m := Merge{Left: rng.Int32N(id), Right: rng.Int32N(id), Into: id}
			if !slices.ContainsFunc(merges, func(o Merge) bool { return o.Left == m.Left && o.Right == m.Right }) {
				merges = append(merges, m)
			}
		}
		ranks := make([]int32, len(merges)) // some equal, as those of a vocabulary with scores
		for i := range ranks {
			ranks[i] = rng.Int32N(4)
		}
		rules := newMergeTable(merges, ranks)
		word := make([]int32, 1+rng.IntN(30))
		for i := range word {
			word[i] = rng.Int32N(letters)
		}
		var w mergeWord
		for _, id := range word {
			w.add(id)
		}
		w.mergeAll(&rules)
		var got []int32
		for _, s := range w.symbols {
			if s.alive {
				got = append(got, s.id)
			}
		}
		if want := mergedSlowly(word, &rules); !slices.Equal(got, want) {
			t.Fatalf("%v with the merges %v of ranks %v: %v, expected %v", word, merges, ranks, got, want)
		}
	}
}

func mergedSlowly(word []int32, rules *mergeTable) []int32 {
	word = slices.Clone(word)
	for {
		best, at := mergeRule{}, -1
		for i := range len(word) - 1 {
			if rule, ok := rules.find(word[i], word[i+1]); ok && (at < 0 || rule.rank < best.rank) {
				best, at = rule, i
			}
		}
		if at < 0 {
			return word
		}
		word = slices.Replace(word, at, at+2, best.into)
	}
}
