//go:build unix

package device

import (
	"errors"
	"unsafe"

	"github.com/ebitengine/purego"
)

// What a Mark says besides the number of a region (IFL_WAIT, IFL_DONE).
const (
	Wait = -1 // the thread waits for the others
	Done = -2 // the thread has ended its step
)

// A Mark is when a thread of the model began something (ifl_mark).
type Mark struct {
	NS    int64 // on the monotonic clock
	What  int32 // index in the manifest's Regions, Wait or Done
	Layer int32
}

// A Step is what a trace knows of one step.
type Step struct {
	Entry, Tokens, Wanted, Seqs int
	Threads                     [][]Mark // of each thread, in order of time; views that the next step overwrites
}

// marksPerThread is room for the marks of a step: two a region, and regions
// are a handful a layer.
const marksPerThread = 1 << 14

// Trace calls fn after every step from now on.
func (c *Context) Trace(fn func(Step)) error {
	if c.on != nil {
		return errors.New("tracing shows the threads of a whole model on the processor: compile it without --devices, choose --device cpu")
	}
	if c.lib.trace == 0 {
		return errors.New("the model's library cannot trace; compile the model again")
	}
	var err error
	size := int64(unsafe.Sizeof(Mark{}))
	if c.marks, err = Map(size*marksPerThread*int64(c.threads), "marks of a trace"); err != nil {
		return err
	}
	purego.SyscallN(c.lib.trace, c.handle, uintptr(unsafe.Pointer(&c.marks.Bytes[0])), marksPerThread)
	c.traced = fn
	return nil
}

// report hands the marks of the step that has just run to the trace.
func (c *Context) report(s Step) {
	all := unsafe.Slice((*Mark)(unsafe.Pointer(&c.marks.Bytes[0])), marksPerThread*c.threads)
	for t := range c.threads {
		part := all[t*marksPerThread:][:marksPerThread]
		n := part[0].NS
		part[0].NS = 0
		s.Threads = append(s.Threads, part[1:1+n])
	}
	c.traced(s)
}
