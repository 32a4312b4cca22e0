// Package spelling finds what a misspelt name was meant to be, for errors about
// unknown keys, types, flags and tensors.
package spelling

import "strings"

// maxName bounds the work: names are short, hostile input is not.
const maxName = 256

// Nearest is the word closest to have, when it is close enough to be a slip of
// the pen (within a third of have's length and one edit more); "" otherwise.
// Case counts for nothing. Of equally close words the first wins.
func Nearest(have string, words []string) string {
	have = have[:min(len(have), maxName)]
	best, bound := "", len(have)/3+2
	for _, w := range words {
		if d := distance(strings.ToLower(have), strings.ToLower(w), bound); d < bound && d < len(w) {
			best, bound = w, d
		}
	}
	return best
}

// distance counts insertions, deletions, replacements and swaps of neighbors
// (optimal string alignment) between byte strings; at least limit, it is limit.
func distance(a, b string, limit int) int {
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
