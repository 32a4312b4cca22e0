// Package spelling finds the word that a misspelled one was meant to be, for
// errors about unknown keys, types, flags, subcommands and tensors.
package spelling

import "strings"

// maxName bounds the work: names are short, hostile input is not.
const maxName = 256

// minPrefix is how many bytes of a word must be given before its end counts as
// left out.
const minPrefix = 3

// Nearest returns the word closest to have: the one with the fewest edits, at
// most a third of have's length plus one; otherwise one that begins with have.
// It returns "" if there is no such word. It ignores case. Of equally close
// words the first wins.
func Nearest(have string, words []string) string {
	have = strings.ToLower(have[:min(len(have), maxName)])
	best, bound := "", len(have)/3+2
	for _, w := range words {
		if d := Distance(have, strings.ToLower(w), bound); d < bound && d < len(w) {
			best, bound = w, d
		}
	}
	if best != "" || len(have) < minPrefix {
		return best
	}
	for _, w := range words {
		if strings.HasPrefix(strings.ToLower(w), have) {
			return w
		}
	}
	return ""
}

// DidYouMean returns the suggestion at the end of an error about an unknown name; "" if there
// is none.
func DidYouMean(have string, words []string) string {
	if n := Nearest(have, words); n != "" {
		return " (did you mean " + n + "?)"
	}
	return ""
}

// Distance returns the number of insertions, deletions, replacements and swaps of
// neighbors that turn a into b (optimal string alignment), at most limit.
func Distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := above[j-1]
			if a[i-1] != b[j-1] {
				cost++
			}
			row[j] = min(cost, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return min(above[len(b)], limit)
}
