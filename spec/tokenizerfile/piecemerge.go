package tokenizerfile

import (
	"slices"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// maxMergedPiece is the maximum length in bytes of pieces that merges are derived for.
const maxMergedPiece = 1024

// mergesFromScores derives the merges of a SentencePiece BPE vocabulary: every pair
// of pieces that concatenates to a piece, sorted by decreasing score. Ties are
// sorted by the length of the left, then of the right piece, longest first.
func mergesFromScores(vocab []tokenizer.Entry, scores []float64) []tokenizer.Merge {
	ids := make(map[string]int32, len(vocab))
	for _, e := range vocab {
		ids[e.Token] = e.ID
	}
	type candidate struct {
		tokenizer.Merge
		score       float64
		left, right int // lengths in characters
	}
	var all []candidate
	for i, e := range vocab {
		if ids[e.Token] != e.ID || len(e.Token) > maxMergedPiece {
			continue
		}
		from, chars := len(all), utf8.RuneCountInString(e.Token)
		n := 0
		for at := range e.Token {
			if at > 0 {
				left, ok1 := ids[e.Token[:at]]
				right, ok2 := ids[e.Token[at:]]
				if ok1 && ok2 {
					all = append(all, candidate{tokenizer.Merge{Left: left, Right: right, Into: e.ID}, scores[i], n, chars - n})
				}
			}
			n++
		}
		slices.SortStableFunc(all[from:], func(a, b candidate) int {
			if a.Left != b.Left {
				return int(a.Left) - int(b.Left)
			}
			return int(a.Right) - int(b.Right)
		})
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		switch {
		case a.score != b.score:
			if a.score > b.score {
				return -1
			}
			return 1
		case a.left != b.left:
			return b.left - a.left
		}
		return b.right - a.right
	})
	out := make([]tokenizer.Merge, len(all))
	for i := range all {
		out[i] = all[i].Merge
	}
	return out
}
