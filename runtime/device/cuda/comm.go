//go:build unix

package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// A Link connects GPUs (NCCL). Its calls enqueue work on a stream, which may be captured
// as a graph; buffers are GPU addresses. Ranks are numbered as in the job.
type Link interface {
	Send(to int, from uintptr, bytes int, stream uintptr) error
	Recv(to uintptr, from int, bytes int, stream uintptr) error
	// Gather stores the parts of all ranks of the tensor-parallel group one after
	// another.
	Gather(to, from uintptr, bytes int, stream uintptr) error
	// Counts returns the communication volume that calls have enqueued so far. Replayed
	// adds that of a graph.
	Counts() comm.Counts
	Replayed(comm.Counts)
	// Failed returns the asynchronous error of the link.
	Failed() error
	Close()
}

// A commTable mirrors struct ifl_comm of ifl_comm.h, the transport functions.
type commTable struct{ self, exchange, send, recv uintptr }

// A transport exchanges rows of a buffer with other ranks.
type transport interface {
	// communicate executes the communication of a launch on rows of its buffer. The
	// parts of an exchange have room for the given number of rows on the GPU.
	communicate(m *model, c *manifest.CUDAComm, rows, room int) error
	// link returns what enqueues the work of communicate without waiting, so that
	// graphs can contain it; nil: communicate waits.
	link() Link
	// failed returns an asynchronous error, after the stream was synchronized.
	failed() error
	close(g *GPU)
}

// openTransport opens the transport of a rank that sends or receives up to the given
// bytes at once: between GPUs if a Link is available, else through the host.
func (m *model) openTransport(bytes int64) (transport, error) {
	if bytes == 0 {
		return noTransport{}, nil
	}
	if m.OpenLink != nil {
		link, err := m.OpenLink()
		if err != nil {
			return noTransport{}, err
		}
		return linkTransport{link}, nil
	}
	if m.cfg.Comm == nil {
		return noTransport{}, nil // enough to measure kernels
	}
	rows, err := m.GPU.pinned(bytes, "rows for other ranks")
	return hostTransport{(*commTable)(m.cfg.Comm), rows}, err
}

// widest returns the widest row that a list of launches sends or receives, in floats.
func widest(list []manifest.CUDALaunch) (cols int) {
	for _, l := range list {
		if l.Comm != nil {
			cols = max(cols, l.Comm.Cols)
		}
		cols = max(cols, widest(l.Body))
	}
	return cols
}

// communicate sends rows to other ranks or receives theirs.
func (m *model) communicate(l *manifest.CUDALaunch, s shape) error {
	rows := s.rowsOf(l.Rows)
	if rows == 0 {
		return nil
	}
	return m.transport.communicate(m, l.Comm, rows, m.partRows(l.Rows, s))
}

// partRows returns for how many rows a part of an exchange has room. ifl_part_of is the C
// version.
func (m *model) partRows(role string, s shape) int {
	n := s.rowsOf(role)
	if n <= maxGraphTokens {
		n = bucket(n)
	}
	return min(n, m.most().rowsOf(role))
}

// noTransport is the transport of a model that is not partitioned.
type noTransport struct{}

func (noTransport) communicate(*model, *manifest.CUDAComm, int, int) error {
	return errors.New("bug: a rank without a transport")
}
func (noTransport) link() Link    { return nil }
func (noTransport) failed() error { return nil }
func (noTransport) close(*GPU)    {}

// hostTransport sends rows through the host by the CPU's transport. It synchronizes the
// stream for each call.
type hostTransport struct {
	table *commTable
	rows  *device.Region // rows on their way to or from another rank
}

func (t hostTransport) link() Link    { return nil }
func (t hostTransport) failed() error { return nil }
func (t hostTransport) close(g *GPU)  { g.unpin(t.rows) }

func (t hostTransport) communicate(m *model, c *manifest.CUDAComm, n, room int) error {
	bytes := int64(n*c.Cols) * 4
	rows, slot := t.rows.Bytes[:bytes], m.memory.header.slot[c.Slot]
	if c.Op != "recv" {
		if err := m.GPU.toHost(rows, slot, m.stream); err != nil {
			return err
		}
	}
	if err := m.GPU.wait(m.stream); err != nil { // also completes the previous call's copy to the GPU from this memory
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
		return t.exchange(m, at, bytes, int64(room*c.Cols)*4)
	}
	return fmt.Errorf("bug: unknown communication %q", c.Op)
}

// exchange gathers the parts of all ranks of the tensor-parallel group on the GPU.
func (t hostTransport) exchange(m *model, mine uintptr, bytes, room int64) error {
	parts := make([]unsafe.Pointer, m.Plan.TPSize)
	if err := commError(purego.SyscallN(t.table.exchange, t.table.self, mine, uintptr(bytes), uintptr(unsafe.Pointer(&parts[0])))); err != nil {
		return err
	}
	for i, p := range parts {
		part := unsafe.Slice((*byte)(p), bytes)
		if err := m.GPU.toDevice(m.memory.header.parts+pointer(int64(i)*room), part, m.stream); err != nil {
			return err
		}
	}
	return nil // the parts stay valid until the next exchange but one, and the next call synchronizes the stream
}

func commError(code, _, _ uintptr) error {
	if int32(code) != 0 {
		return device.ErrComm
	}
	return nil
}

// linkTransport sends rows directly between GPUs and enqueues the work without waiting.
// It always sends as many rows as parts have room for.
type linkTransport struct{ to Link }

func (t linkTransport) link() Link    { return t.to }
func (t linkTransport) failed() error { return t.to.Failed() }
func (t linkTransport) close(*GPU)    { t.to.Close() }

func (t linkTransport) communicate(m *model, c *manifest.CUDAComm, _, room int) error {
	bytes := room * c.Cols * 4
	slot, on := uintptr(m.memory.header.slot[c.Slot]), uintptr(m.stream)
	switch c.Op {
	case "send":
		return t.to.Send(c.Peer, slot, bytes, on)
	case "recv":
		return t.to.Recv(slot, c.Peer, bytes, on)
	}
	return t.to.Gather(uintptr(m.memory.header.parts), slot, bytes, on)
}
