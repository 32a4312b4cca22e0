package jinja

import "fmt"

// An Error is a fault of a template or of what it was given.
type Error struct {
	Line    int // of the template, from 1; 0: unknown
	Message string
	Raised  bool // the template itself called raise_exception
}

func (e *Error) Error() string {
	if e.Line == 0 || e.Raised {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

// failure carries an Error up through evaluation; Parse and Render catch it.
type failure struct{ err *Error }

// fail ends the evaluation.
func fail(format string, args ...any) {
	panic(failure{&Error{Message: fmt.Sprintf(format, args...)}})
}

// catch turns a failure into an error.
func catch(err *error, line *int) {
	switch r := recover().(type) {
	case nil:
	case failure:
		if r.err.Line == 0 {
			r.err.Line = *line
		}
		*err = r.err
	default:
		panic(r)
	}
}
