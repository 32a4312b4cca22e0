//go:build unix

package cpu

import (
	"errors"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/device"
)

// A tracer hands on what the threads note of each step.
type tracer struct {
	marks *device.Region // [threads][marksPerThread]
	fn    func(device.StepTrace)
}

// marksPerThread is room for the marks of a step: two a region, and regions
// are a handful a layer.
const marksPerThread = 1 << 14

// Trace calls fn after every step from now on.
func (m *model) Trace(fn func(device.StepTrace)) error {
	if m.lib.trace == 0 {
		return errors.New("the model's library cannot trace; compile the model again")
	}
	var err error
	size := int64(unsafe.Sizeof(device.Mark{}))
	if m.tracer.marks, err = device.Map(size*marksPerThread*int64(m.threads), "marks of a trace"); err != nil {
		return err
	}
	purego.SyscallN(m.lib.trace, m.handle, uintptr(unsafe.Pointer(&m.tracer.marks.Bytes[0])), marksPerThread)
	m.tracer.fn = fn
	return nil
}

// report hands the marks of the step that has just run to the trace.
func (t *tracer) report(threads int, s *device.Step) {
	if t.fn == nil {
		return
	}
	out := device.StepTrace{Graph: s.Graph, Tokens: s.Tokens, OutRows: s.OutRows, Seqs: s.Seqs}
	all := unsafe.Slice((*device.Mark)(unsafe.Pointer(&t.marks.Bytes[0])), marksPerThread*threads)
	for i := range threads {
		part := all[i*marksPerThread:][:marksPerThread]
		n := part[0].NS
		part[0].NS = 0
		out.Threads = append(out.Threads, part[1:1+n])
	}
	t.fn(out)
}
