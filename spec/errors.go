package spec

import (
	"fmt"
	"sort"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// A Pos is a place in a model spec; the zero Pos is "derived".
type Pos struct {
	File      string
	Line, Col int // from 1
}

// String returns file:line:col, or the file alone where there is no line.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// An Error is a fault of a model spec or of the files it names.
type Error struct {
	Pos  Pos
	What string
	Pull []string // if files are missing that a hub repository holds: the arguments of iflowc pull
}

// Error returns "file:line:col: what".
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
	if n := spelling.Nearest(have, legal); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	if len(legal) > 0 && len(legal) <= 16 {
		s := append([]string(nil), legal...)
		sort.Strings(s)
		return "; want one of " + strings.Join(s, ", ")
	}
	return ""
}
