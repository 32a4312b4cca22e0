package ir

import (
	"errors"
	"fmt"

	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// An Error is one complaint about a module, with the place it concerns.
type Error struct {
	Pos Pos
	Msg string
}

// Error returns "file:line:col: message"; the place is left out where a pass
// made the thing.
func (e *Error) Error() string {
	if e.Pos == (Pos{}) {
		return e.Msg
	}
	return e.Pos.String() + ": " + e.Msg
}

// String returns "file:line:col", or "-" for the zero Pos.
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

// maxComplaints is how many a list shows: one slip in a graph of many layers
// gives as many.
const maxComplaints = 10

func (l errorList) err() error {
	if more := len(l) - maxComplaints; more > 0 {
		l = append(l[:maxComplaints:maxComplaints], fmt.Errorf("and %d more like these", more))
	}
	return errors.Join(l...)
}

// didYouMean returns the tail of an error about an unknown name.
func didYouMean(got string, names []string) string {
	if n := spelling.Nearest(got, names); n != "" {
		return fmt.Sprintf(" (did you mean %s?)", n)
	}
	return ""
}
