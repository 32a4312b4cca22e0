package spec

import (
	"fmt"
	"sort"
	"strings"
)

// A Pos is a place in a specification; the zero Pos is "derived".
type Pos struct {
	File      string
	Line, Col int // from 1
}

// String gives file:line:col, or the file alone where there is no line.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// An Error is a fault of a specification or of the files it names.
type Error struct {
	Pos  Pos
	What string
}

// Error gives "file:line:col: what".
func (e *Error) Error() string {
	if e.Pos == (Pos{}) {
		return e.What
	}
	return e.Pos.String() + ": " + e.What
}

func errAt(p Pos, format string, args ...any) error {
	return &Error{Pos: p, What: fmt.Sprintf(format, args...)}
}

// suggest ends an error message with the nearest of the legal words, or with
// all of them where they are few.
func suggest(have string, legal []string) string {
	if n := nearest(have, legal); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	if len(legal) > 0 && len(legal) <= 16 {
		s := append([]string(nil), legal...)
		sort.Strings(s)
		return "; want one of " + strings.Join(s, ", ")
	}
	return ""
}

// nearest is the word with the least edit distance, if that is small enough
// to be a likely slip.
func nearest(have string, words []string) string {
	best, bestD := "", len(have)/3+2
	for _, w := range words {
		if d := editDistance(strings.ToLower(have), w, bestD); d < bestD {
			best, bestD = w, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of
// neighbours (optimal string alignment); at least limit, it is limit.
func editDistance(a, b string, limit int) int {
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
