//go:build unix

package scheduler

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestPanicStack checks that a job's panic becomes its error and that the log has the
// stack.
func TestPanicStack(t *testing.T) {
	t.Parallel()
	err := safely(func() error { panic("nobody expects it") })
	if err == nil || err.Error() != "bug: nobody expects it" {
		t.Fatalf("%v, expected the panic", err)
	}
	var out bytes.Buffer
	s := &Scheduler{opt: Options{Log: slog.New(slog.NewTextHandler(&out, nil))}}
	s.logPanic(err)
	if !strings.Contains(out.String(), "TestPanicStack") || !strings.Contains(out.String(), "nobody expects it") {
		t.Errorf("the log does not say where: %s", out.String())
	}
	out.Reset()
	if s.logPanic(errFinished); out.Len() > 0 {
		t.Errorf("the log of a job without a panic: %s", out.String())
	}
}
