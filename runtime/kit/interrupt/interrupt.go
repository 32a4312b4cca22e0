// Package interrupt cancels a program's work on signals and records the signal for the
// exit code.
package interrupt

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// Stopped is the error of work that a signal cancelled.
type Stopped struct{ Signal os.Signal }

func (s Stopped) Error() string {
	if s.Signal == syscall.SIGTERM {
		return "terminated"
	}
	return "interrupted"
}

// ExitCode returns the exit code that shells report for a process killed by the signal,
// 128 plus its number: 130 for Ctrl-C, 143 for SIGTERM.
func (s Stopped) ExitCode() int {
	if s.Signal == syscall.SIGTERM {
		return 128 + int(syscall.SIGTERM)
	}
	return 128 + int(syscall.SIGINT)
}

// Context returns a context that is cancelled by SIGINT (Ctrl-C) or SIGTERM. After
// stop, these signals kill the process.
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

// Cause returns the signal that cancelled the context, or SIGINT if it was cancelled
// otherwise.
func Cause(ctx context.Context) Stopped {
	s := Stopped{os.Interrupt}
	errors.As(context.Cause(ctx), &s)
	return s
}
