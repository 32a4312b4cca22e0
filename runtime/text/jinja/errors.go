package jinja

import (
	"fmt"
	"strings"
)

// An Error is an error in a template or in its input.
type Error struct {
	Line    int // line of the template, from 1; 0: unknown
	Message string
	Raised  bool // raised by raise_exception in the template

	Items []Value // items of the loops that contain the error, outermost first
}

func (e *Error) Error() string {
	if e.Line == 0 || e.Raised {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

// failure is the panic value for an Error during evaluation; Parse and Render recover
// it.
type failure struct{ err *Error }

// Stopped is the error of a render that Limits.Tick ended.
type Stopped struct{ Err error }

func (e *Stopped) Error() string { return e.Err.Error() }

// Unwrap returns the error of Tick.
func (e *Stopped) Unwrap() error { return e.Err }

// maxMessage bounds the bytes of a message, which may contain texts of the input.
const maxMessage = 2000

// fail stops the evaluation with an error.
func fail(format string, args ...any) {
	panic(failure{&Error{Message: short(fmt.Sprintf(format, args...))}})
}

// short cuts a long message.
func short(message string) string {
	if len(message) > maxMessage {
		return strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}

// catch recovers a failure and returns it as an error.
func catch(err *error, line *int) {
	switch r := recover().(type) {
	case nil:
	case *Stopped:
		*err = r
	case failure:
		if r.err.Line == 0 {
			r.err.Line = *line
		}
		*err = r.err
	default:
		panic(r)
	}
}
