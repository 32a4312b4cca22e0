package ir

import (
	"errors"
	"fmt"
)

// An Error is a diagnostic about a module, with its position.
type Error struct {
	Pos Pos
	Msg string
}

// Error returns "file:line:col: message". The position is omitted for parts of a
// module that a pass created.
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

// An errorList collects errors in the order of detection.
type errorList []error

func (l *errorList) addf(pos Pos, format string, args ...any) {
	*l = append(*l, &Error{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// maxComplaints is the maximum number of errors in a message. One mistake in a graph
// of many layers causes one error per layer.
const maxComplaints = 10

func (l errorList) err() error {
	if more := len(l) - maxComplaints; more > 0 {
		l = append(l[:maxComplaints:maxComplaints], fmt.Errorf("and %d more", more))
	}
	return errors.Join(l...)
}
