package ir

import (
	"errors"
	"fmt"
	"strings"
)

// An Error is one complaint about a module, with the place it concerns.
type Error struct {
	Pos Pos
	Msg string
}

// Error gives "file:line:col: message"; the place is left out where a pass
// made the thing.
func (e *Error) Error() string {
	if e.Pos == (Pos{}) {
		return e.Msg
	}
	return e.Pos.String() + ": " + e.Msg
}

// String gives "file:line:col", or "-" for the zero Pos.
func (p Pos) String() string {
	if p == (Pos{}) {
		return "-"
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// errorList gathers complaints in the order they are met.
type errorList []error

func (l *errorList) addf(pos Pos, format string, args ...any) {
	*l = append(*l, &Error{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

func (l errorList) err() error { return errors.Join(l...) }

// Nearest gives the name closest to got, when it is close enough to be a slip
// of the pen (at most two edits, or a third of the length); "" otherwise.
func Nearest(got string, names []string) string {
	best, bestDist := "", max(2, len(got)/3)+1
	for _, n := range names {
		if d := editDistance(strings.ToLower(got), strings.ToLower(n)); d < bestDist && d < len(n) {
			best, bestDist = n, d
		}
	}
	return best
}

// didYouMean is the tail of an error about an unknown name.
func didYouMean(got string, names []string) string {
	if n := Nearest(got, names); n != "" {
		return fmt.Sprintf(" (did you mean %s?)", n)
	}
	return ""
}

// editDistance is Levenshtein's distance between byte strings, cut off at 64
// bytes because names are short and hostile input is not.
func editDistance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
