package spec

import (
	"fmt"
	"sort"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// A Pos is a position in a model spec. The zero Pos means that the spec was derived.
type Pos struct {
	File      string
	Line, Col int // from 1
}

// String returns file:line:col, or only the file if there is no line.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// An Error is an error in a model spec or in the files that it names.
type Error struct {
	Pos  Pos
	What string
	Pull []string // arguments of iflowc pull, if the missing files are in a hub repository
}

// Error returns "file:line:col: message".
func (e *Error) Error() string {
	if e.Pos == (Pos{}) {
		return e.What
	}
	return e.Pos.String() + ": " + e.What
}

// errAt returns an error of one line, whatever values of the file are in it.
func errAt(p Pos, format string, args ...any) error {
	return &Error{Pos: p, What: strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", `\n`)}
}

// suggest returns the end of an error message: the legal word nearest to have,
// or all legal words if there are few.
func suggest(have string, legal []string) string {
	if n := spelling.Nearest(have, legal); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	if len(legal) > 0 && len(legal) <= 24 {
		s := append([]string(nil), legal...)
		sort.Strings(s)
		return "; want one of " + strings.Join(s, ", ")
	}
	return ""
}

// yamlError converts an error of yaml.v3 ("yaml: line 3: …") to an Error.
func yamlError(file string, err error) error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	p := Pos{File: file}
	if n, _ := fmt.Sscanf(msg, "line %d:", &p.Line); n == 1 {
		p.Col = 1
		_, msg, _ = strings.Cut(msg, ": ")
	}
	if strings.Contains(msg, "control characters") {
		msg += "; a model spec is a text file; is this another kind of file?"
	}
	return &Error{Pos: p, What: "not YAML: " + msg}
}
