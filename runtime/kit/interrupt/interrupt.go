// Package interrupt ends a program's work when a signal asks for it, and keeps
// which signal it was for the exit code.
package interrupt

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// Stopped is the error of work that a signal ended.
type Stopped struct{ Signal os.Signal }

// Error is what there is to say to the user.
func (s Stopped) Error() string {
	if s.Signal == syscall.SIGTERM {
		return "terminated"
	}
	return "interrupted"
}

// ExitCode is what a shell gives for a process that the signal ended, 128 and
// the signal's number: 130 for Ctrl-C, 143 for SIGTERM.
func (s Stopped) ExitCode() int {
	if s.Signal == syscall.SIGTERM {
		return 128 + int(syscall.SIGTERM)
	}
	return 128 + int(syscall.SIGINT)
}

// Context gives a context that Ctrl-C (SIGINT) or SIGTERM ends. Once stop was
// called, these signals end the process at once.
func Context(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-c:
			cancel(Stopped{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(c)
		cancel(nil)
	}
}

// Cause says which signal ended the context; one that ended otherwise counts as
// interrupted.
func Cause(ctx context.Context) Stopped {
	s := Stopped{os.Interrupt}
	errors.As(context.Cause(ctx), &s)
	return s
}
