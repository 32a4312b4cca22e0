package tokenizer

import "testing"

// TestFit compares the lengths of shortened texts with those of Hugging Face's tokenizers
// (longest_first) for BERT, whose pairs have 3 special tokens.
func TestFit(t *testing.T) {
	t.Parallel()
	bert := pairTemplate{{ids: []int32{1}}, {sequence: 'A'}, {ids: []int32{2}}, {sequence: 'B'}, {ids: []int32{2}}}
	for _, c := range [][5]int{ // texts, maximum, and texts again
		{3, 9, 8, 2, 3}, {9, 3, 8, 3, 2}, {9, 9, 8, 2, 3}, {9, 9, 9, 3, 3}, {8, 9, 9, 3, 3}, {9, 8, 9, 3, 3}, {3, 3, 20, 3, 3}, {2, 9, 3, 0, 0}, {4, 5, 6, 1, 2}, {5, 4, 6, 2, 1}, {5, 4, 1, 0, 0},
	} {
		texts := [2][]int32{make([]int32, c[0]), make([]int32, c[1])}
		if bert.fit(&texts, c[2]); len(texts[0]) != c[3] || len(texts[1]) != c[4] {
			t.Errorf("%v: %d and %d tokens", c, len(texts[0]), len(texts[1]))
		}
	}
}
