//go:build unix

package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// A Link is a way between GPUs (NCCL): its calls put work on a stream, and what
// they read and write are addresses of GPUs' memory. Ranks are those of the job.
type Link interface {
	Send(to int, from uintptr, bytes int, stream uintptr) error
	Recv(to uintptr, from int, bytes int, stream uintptr) error
	// Together puts the work of several calls on the stream at once.
	Together(calls func() error) error
	// Failed says what went wrong behind the calls.
	Failed() error
	Close()
}

// A Group is where a rank stands among those that share its layers.
type Group struct{ First, Members int }

// A commTable is struct ifl_comm of ifl_comm.h: how the rank reaches the others.
type commTable struct{ self, exchange, send, recv uintptr }

// An exchange is how a model's rank reaches the others.
type exchange struct {
	link Link           // to other GPUs, or nil
	told *device.Region // rows on their way to another rank or from it; nil: there is none
}

// open makes room for so many bytes that are said or heard at once.
func (e *exchange) open(m *model, bytes int64) (err error) {
	if bytes == 0 {
		return nil
	}
	if m.OpenLink != nil {
		if e.link, err = m.OpenLink(); err != nil {
			return err
		}
	}
	e.told, err = m.GPU.pinned(bytes, "rows for other ranks")
	return err
}

func (e *exchange) close(g *GPU) {
	g.unpin(e.told)
	if e.link != nil {
		e.link.Close()
	}
	*e = exchange{}
}

// widest is the widest row that a list of launches tells other ranks or hears
// from them, in floats.
func widest(list []manifest.CUDALaunch) (cols int) {
	for _, l := range list {
		if l.Comm != nil {
			cols = max(cols, l.Comm.Cols)
		}
		cols = max(cols, widest(l.Body))
	}
	return cols
}

// talk tells other ranks rows of a buffer, or fills it with what they say. The
// rows go through the host, and the stream is waited for: the transport is one
// of processors.
func (m *model) talk(l *manifest.CUDALaunch, s shape) error {
	bytes := int64(s.rowsOf(l.Rows)) * int64(l.Comm.Cols) * 4
	if bytes == 0 {
		return nil
	}
	if m.exchange.link != nil {
		return m.talkOn(l.Comm, bytes)
	}
	table := (*commTable)(m.cfg.Comm)
	if table == nil {
		return errors.New("bug: a rank without a transport")
	}
	rows, slot := m.exchange.told.Bytes[:bytes], m.memory.header.slot[l.Comm.Slot]
	if l.Comm.Op != "recv" {
		if err := m.GPU.toHost(rows, slot, m.stream); err != nil {
			return err
		}
	}
	if err := m.GPU.wait(m.stream); err != nil { // also for what the last talk sends to the GPU from the same memory
		return err
	}
	at := uintptr(unsafe.Pointer(&rows[0]))
	switch l.Comm.Op {
	case "send":
		return said(purego.SyscallN(table.send, table.self, uintptr(l.Comm.Peer), at, uintptr(bytes)))
	case "recv":
		if err := said(purego.SyscallN(table.recv, table.self, uintptr(l.Comm.Peer), at, uintptr(bytes))); err != nil {
			return err
		}
		return m.GPU.toDevice(slot, rows, m.stream)
	case "exchange":
		return m.hear(table, at, bytes)
	}
	return fmt.Errorf("bug: a launch that would %q", l.Comm.Op)
}

// hear brings the parts of all members to the GPU.
func (m *model) hear(table *commTable, mine uintptr, bytes int64) error {
	parts := make([]unsafe.Pointer, m.Plan.Members)
	if err := said(purego.SyscallN(table.exchange, table.self, mine, uintptr(bytes), uintptr(unsafe.Pointer(&parts[0])))); err != nil {
		return err
	}
	for i, p := range parts {
		part := unsafe.Slice((*byte)(p), bytes)
		if err := m.GPU.toDevice(m.memory.header.parts+pointer(int64(i)*m.memory.header.partBytes), part, m.stream); err != nil {
			return err
		}
	}
	return nil // the parts can be read until the next exchange but one; the next waits for the stream
}

// talkOn is talk between GPUs: nothing goes through the host, and nothing waits.
func (m *model) talkOn(c *manifest.CUDAComm, bytes int64) error {
	slot, on := uintptr(m.memory.header.slot[c.Slot]), uintptr(m.stream)
	switch c.Op {
	case "send":
		return m.exchange.link.Send(c.Peer, slot, int(bytes), on)
	case "recv":
		return m.exchange.link.Recv(slot, c.Peer, int(bytes), on)
	}
	return m.exchange.link.Together(func() error {
		for i := range m.Group.Members { // also to and from itself: the part lies where the others' do
			if err := m.exchange.link.Send(m.Group.First+i, slot, int(bytes), on); err != nil {
				return err
			}
			if err := m.exchange.link.Recv(uintptr(m.memory.header.parts)+uintptr(int64(i)*m.memory.header.partBytes), m.Group.First+i, int(bytes), on); err != nil {
				return err
			}
		}
		return nil
	})
}

func said(code, _, _ uintptr) error {
	if int32(code) != 0 {
		return device.ErrComm
	}
	return nil
}
