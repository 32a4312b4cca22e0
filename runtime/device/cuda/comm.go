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
type Group struct{ First, TPSize int }

// A commTable is struct ifl_comm of ifl_comm.h: how the rank reaches the others.
type commTable struct{ self, exchange, send, recv uintptr }

// A transport brings rows of a buffer to other ranks and theirs here.
type transport interface {
	// communicate does what a launch says to bytes of its buffer.
	communicate(m *model, c *manifest.CUDAComm, bytes int64) error
	// failed says what went wrong behind the calls, once the stream was waited for.
	failed() error
	close(g *GPU)
}

// openTransport opens the one of a rank that sends or receives so many bytes at
// once: between GPUs where there is a Link, else through the host.
func (m *model) openTransport(bytes int64) (transport, error) {
	if bytes == 0 {
		return noTransport{}, nil
	}
	if m.OpenLink != nil {
		link, err := m.OpenLink()
		if err != nil {
			return noTransport{}, err
		}
		return linkTransport{link, m.Group}, nil
	}
	if m.cfg.Comm == nil {
		return noTransport{}, nil // as to measure kernels
	}
	rows, err := m.GPU.pinned(bytes, "rows for other ranks")
	return hostTransport{(*commTable)(m.cfg.Comm), rows}, err
}

// widest is the widest row that a list of launches sends or receives, in floats.
func widest(list []manifest.CUDALaunch) (cols int) {
	for _, l := range list {
		if l.Comm != nil {
			cols = max(cols, l.Comm.Cols)
		}
		cols = max(cols, widest(l.Body))
	}
	return cols
}

// communicate sends rows to other ranks, or receives theirs.
func (m *model) communicate(l *manifest.CUDALaunch, s shape) error {
	bytes := int64(s.rowsOf(l.Rows)) * int64(l.Comm.Cols) * 4
	if bytes == 0 {
		return nil
	}
	return m.transport.communicate(m, l.Comm, bytes)
}

// noTransport is that of a model that is whole.
type noTransport struct{}

func (noTransport) communicate(*model, *manifest.CUDAComm, int64) error {
	return errors.New("bug: a rank without a transport")
}
func (noTransport) failed() error { return nil }
func (noTransport) close(*GPU)    {}

// hostTransport sends rows through the host, and the stream is waited for: it is
// the CPU's transport.
type hostTransport struct {
	table *commTable
	rows  *device.Region // on their way to another rank or from it
}

func (t hostTransport) failed() error { return nil }
func (t hostTransport) close(g *GPU)  { g.unpin(t.rows) }

func (t hostTransport) communicate(m *model, c *manifest.CUDAComm, bytes int64) error {
	rows, slot := t.rows.Bytes[:bytes], m.memory.header.slot[c.Slot]
	if c.Op != "recv" {
		if err := m.GPU.toHost(rows, slot, m.stream); err != nil {
			return err
		}
	}
	if err := m.GPU.wait(m.stream); err != nil { // also for what the last call sends to the GPU from the same memory
		return err
	}
	at := uintptr(unsafe.Pointer(&rows[0]))
	switch c.Op {
	case "send":
		return commError(purego.SyscallN(t.table.send, t.table.self, uintptr(c.Peer), at, uintptr(bytes)))
	case "recv":
		if err := commError(purego.SyscallN(t.table.recv, t.table.self, uintptr(c.Peer), at, uintptr(bytes))); err != nil {
			return err
		}
		return m.GPU.toDevice(slot, rows, m.stream)
	case "exchange":
		return t.exchange(m, at, bytes)
	}
	return fmt.Errorf("bug: a launch that would %q", c.Op)
}

// exchange brings the parts of all ranks of the tensor-parallel group to the GPU.
func (t hostTransport) exchange(m *model, mine uintptr, bytes int64) error {
	parts := make([]unsafe.Pointer, m.Plan.TPSize)
	if err := commError(purego.SyscallN(t.table.exchange, t.table.self, mine, uintptr(bytes), uintptr(unsafe.Pointer(&parts[0])))); err != nil {
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

func commError(code, _, _ uintptr) error {
	if int32(code) != 0 {
		return device.ErrComm
	}
	return nil
}

// linkTransport goes between GPUs: nothing goes through the host, and nothing
// waits.
type linkTransport struct {
	link  Link
	group Group
}

func (t linkTransport) failed() error { return t.link.Failed() }
func (t linkTransport) close(*GPU)    { t.link.Close() }

func (t linkTransport) communicate(m *model, c *manifest.CUDAComm, bytes int64) error {
	slot, on := uintptr(m.memory.header.slot[c.Slot]), uintptr(m.stream)
	switch c.Op {
	case "send":
		return t.link.Send(c.Peer, slot, int(bytes), on)
	case "recv":
		return t.link.Recv(slot, c.Peer, int(bytes), on)
	}
	return t.link.Together(func() error {
		for i := range t.group.TPSize { // also to and from itself: the part lies where the others' do
			if err := t.link.Send(t.group.First+i, slot, int(bytes), on); err != nil {
				return err
			}
			if err := t.link.Recv(uintptr(m.memory.header.parts)+uintptr(int64(i)*m.memory.header.partBytes), t.group.First+i, int(bytes), on); err != nil {
				return err
			}
		}
		return nil
	})
}
