//go:build unix

package cpu

import (
	"errors"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/device"
)

// A tracer reports the marks that the threads record in each step.
type tracer struct {
	marks *device.Region // [threads][marksPerThread]
	fn    func(device.StepTrace)
}

// marksPerThread is the capacity for marks of a step: two per region, and a layer has a
// handful of regions.
const marksPerThread = 1 << 14

// Trace calls fn after each following step.
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

// report passes the marks of the last step to the trace function.
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
