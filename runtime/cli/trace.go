//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/trace"
	"github.com/iflowc/iflowc/runtime/engine"
)

// A tracer writes the file of --trace: first under a temporary name, so that a
// file of that name is complete.
type tracer struct {
	*trace.Writer
	file *os.File
	path string
}

// startTrace traces every step of the engine from now on.
func (m *model) startTrace(path string, eng *engine.Engine) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".trace-*")
	if err != nil {
		return wrong(fmt.Errorf("--trace %s: %w", path, err))
	}
	m.trace = &tracer{Writer: trace.NewWriter(f, m.manifest), file: f, path: path}
	return eng.Trace(func(s device.StepTrace) { m.trace.Step(s) })
}

// end completes the file.
func (t *tracer) end() error {
	err := t.Close()
	if e := t.file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(t.file.Name(), t.path)
	}
	if err != nil {
		os.Remove(t.file.Name())
		return fmt.Errorf("--trace %s: %w", t.path, err)
	}
	return nil
}
