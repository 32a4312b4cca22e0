//go:build unix

package cpu

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/device"
)

// Submit computes the step before it returns.
func (m *model) Submit(s *device.Step) func() error { return device.Ended(m.run(s)) }

func (m *model) run(s *device.Step) error {
	if m.handle == 0 {
		return errors.New("bug: Submit after Close")
	}
	m.populator.reach(s.KVPages)
	s.ForgetLargest()
	maxima := m.maxima[:min(m.threads*max(s.OutRows, 0), len(m.maxima))]
	for i := range maxima {
		maxima[i].At = device.BestNone
	}
	m.fill(s)
	runtime.LockOSThread()
	code, _, _ := purego.SyscallN(m.lib.run, m.handle, uintptr(unsafe.Pointer(m.header)))
	runtime.UnlockOSThread()
	if code != 0 {
		return runError(int32(code), s)
	}
	for row := range s.OutRows {
		s.SetArgmax(row, maxima[row:], s.OutRows)
	}
	m.tracer.report(m.threads, s)
	return nil
}

// fill writes the C header of a step.
func (m *model) fill(s *device.Step) {
	h := m.header
	*h = stepHeader{
		abi: device.ABI, entry: int32(s.Graph), tokens: int32(s.Tokens), outRows: int32(s.OutRows), seqs: int32(s.Seqs),
		id: device.Pointer(s.ID), pos: device.Pointer(s.Pos), seq: device.Pointer(s.Seq), slot: device.Pointer(s.Slot),
		outRow: device.Pointer(s.OutRow), first: device.Pointer(s.First), past: device.Pointer(s.Past),
		pageAt: device.Pointer(s.PageAt), page: device.Pointer(s.Page),
		xpageAt: device.Pointer(s.XPageAt), xpage: device.Pointer(s.XPage), xrows: device.Pointer(s.XRows),
		cellAt: device.Pointer(s.CellAt), cellFrom: device.Pointer(s.CellFrom), cell: device.Pointer(s.Cell),
		best: device.Pointer(m.maxima),
	}
	if s.Typed {
		h.types = device.Pointer(s.Types)
	}
	if s.Masked {
		h.mask, h.maskWords = device.Pointer(s.Mask), int32(s.MaskWords)
	}
	if s.Adapted {
		h.adapter = device.Pointer(s.Adapter)
	}
	for i, o := range s.Out {
		h.out[i] = device.Pointer(o)
	}
}

// runError returns the error for a result of ifl_run.
func runError(code int32, s *device.Step) error {
	switch code {
	case -1:
		return errors.New("bug: the model's library refused the step's ABI")
	case -2:
		return fmt.Errorf("bug: a step of %d tokens, %d output rows and %d sequences exceeds the model's maximum", s.Tokens, s.OutRows, s.Seqs)
	case -3:
		return errors.New("a token id, page, cell or row of the step is out of range")
	case -4:
		return device.ErrComm
	}
	return fmt.Errorf("the model's library returned %d", code)
}
