//go:build unix

package comm

import (
	"fmt"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/kit/wheels"
)

// NCCLFiles returns the files that may be the library, in the order in which they are
// tried: by name on the system's library path, and of Python packages.
func NCCLFiles() []string {
	return append([]string{"libnccl.so.2", "libnccl.so"}, wheels.Find("nvidia/nccl/lib/libnccl.so.2")...)
}

// leastNCCL is the oldest supported version. Since 2.23, ncclCommInitRankScalable takes
// the unique id by address; ncclCommInitRank takes it by value.
const leastNCCL = 22300

// NCCL is NVIDIA's library for communication between GPUs. It is loaded when a model
// needs it and never linked.
type NCCL struct {
	Version int // 22300 for 2.23.0

	calls ncclCalls
}

type ncclCalls struct {
	getVersion, getUniqueID, commInit  uintptr
	commSplit, commDestroy, commAbort  uintptr
	send, recv, allGather              uintptr
	errorString, lastError, asyncError uintptr
}

// OpenNCCL loads the library from file, or the first of NCCLFiles if file is empty.
func OpenNCCL(file string) (*NCCL, error) {
	files := NCCLFiles()
	if file != "" {
		files = []string{file}
	}
	var tried []string
	for _, f := range files {
		handle, err := purego.Dlopen(f, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			tried = append(tried, err.Error())
			continue
		}
		return bindNCCL(f, handle)
	}
	return nil, fmt.Errorf("a model on several GPUs needs NCCL, which cannot be loaded (%s); run pip install nvidia-nccl-cu12 (or -cu13)", strings.Join(tried, "; "))
}

func bindNCCL(file string, handle uintptr) (*NCCL, error) {
	n := &NCCL{}
	c := &n.calls
	for _, s := range []struct {
		name string
		at   *uintptr
	}{
		{"ncclGetVersion", &c.getVersion}, {"ncclGetUniqueId", &c.getUniqueID}, {"ncclCommInitRankScalable", &c.commInit},
		{"ncclCommDestroy", &c.commDestroy}, {"ncclCommAbort", &c.commAbort}, {"ncclSend", &c.send}, {"ncclRecv", &c.recv},
		{"ncclAllGather", &c.allGather}, {"ncclCommSplit", &c.commSplit},
		{"ncclGetErrorString", &c.errorString}, {"ncclGetLastError", &c.lastError}, {"ncclCommGetAsyncError", &c.asyncError},
	} {
		var err error
		if *s.at, err = purego.Dlsym(handle, s.name); err != nil {
			return nil, fmt.Errorf("%s lacks %s: NCCL %d.%d or later is needed: %w", file, s.name, leastNCCL/10000, leastNCCL/100%100, err)
		}
	}
	var v int32
	if err := n.check("ncclGetVersion", c.getVersion, uintptr(unsafe.Pointer(&v))); err != nil {
		return nil, err
	}
	n.Version = int(v)
	return n, nil
}

// An NCCLID identifies a job (ncclUniqueId): rank 0 creates it and sends it to the
// others.
type NCCLID [128]byte

// An NCCLGroup is a rank's membership in a group of GPUs. Its calls enqueue work on a
// CUDA stream and return; buffers are GPU addresses. Their errors wrap device.ErrComm.
type NCCLGroup struct {
	n           *NCCL
	comm        atomic.Uintptr // ncclComm_t; 0: not joined, left or aborted
	tensor      atomic.Uintptr // that of the tensor-parallel group; the same if all ranks belong to it
	rank, ranks int
	first, size int // of the tensor-parallel group

	exchanges, bytes atomic.Int64
	sends, sent      atomic.Int64
}

// Group returns a rank's membership in a group, before Join. The rank belongs to a
// tensor-parallel group of the given first rank and size.
func (n *NCCL) Group(rank, ranks, first, size int) *NCCLGroup {
	return &NCCLGroup{n: n, rank: rank, ranks: ranks, first: first, size: size}
}

// ID creates the id of a new job.
func (r *NCCLGroup) ID() (id NCCLID, err error) {
	return id, r.n.check("ncclGetUniqueId", r.n.calls.getUniqueID, uintptr(unsafe.Pointer(&id)))
}

// Join makes the thread's current GPU a rank of the group. It returns when all ranks
// have joined.
func (r *NCCLGroup) Join(id NCCLID) error {
	var comm uintptr
	err := r.n.check("ncclCommInitRankScalable", r.n.calls.commInit, uintptr(unsafe.Pointer(&comm)), uintptr(r.ranks), uintptr(r.rank), 1, uintptr(unsafe.Pointer(&id)), 0)
	if err != nil {
		return fmt.Errorf("rank %d of %d: %w", r.rank, r.ranks, err)
	}
	r.comm.Store(comm)
	tensor := comm
	if r.size != r.ranks { // then no rank's group has all ranks, and all ranks split the communicator
		if err := r.call("ncclCommSplit", r.n.calls.commSplit, comm, uintptr(r.first), uintptr(r.rank), uintptr(unsafe.Pointer(&tensor)), 0); err != nil {
			return fmt.Errorf("rank %d of %d: %w", r.rank, r.ranks, err)
		}
	}
	r.tensor.Store(tensor)
	return nil
}

// Values of NCCL's enumerations.
const (
	ncclUint8      = 1
	ncclInProgress = 7
)

// Send enqueues a send of bytes to a rank.
func (r *NCCLGroup) Send(to int, from uintptr, bytes int, stream uintptr) error {
	r.sends.Add(1)
	r.sent.Add(int64(bytes))
	return r.call("ncclSend", r.n.calls.send, from, uintptr(bytes), ncclUint8, uintptr(to), r.comm.Load(), stream)
}

// Recv enqueues a receive of bytes from a rank.
func (r *NCCLGroup) Recv(to uintptr, from int, bytes int, stream uintptr) error {
	return r.call("ncclRecv", r.n.calls.recv, to, uintptr(bytes), ncclUint8, uintptr(from), r.comm.Load(), stream)
}

// Gather enqueues an exchange in the tensor-parallel group: it stores the parts of all
// ranks one after another. ncclAllGather only copies, so that its result does not depend
// on NCCL's algorithm.
func (r *NCCLGroup) Gather(to, from uintptr, bytes int, stream uintptr) error {
	r.exchanges.Add(1)
	r.bytes.Add(int64(bytes))
	return r.call("ncclAllGather", r.n.calls.allGather, from, to, uintptr(bytes), ncclUint8, r.tensor.Load(), stream)
}

// Replayed adds the volume of calls that a graph repeats.
func (r *NCCLGroup) Replayed(c Counts) {
	r.exchanges.Add(c.Exchanges)
	r.bytes.Add(c.Exchanged)
	r.sends.Add(c.Sends)
	r.sent.Add(c.Sent)
}

// Counts returns the communication volume enqueued so far.
func (r *NCCLGroup) Counts() Counts {
	return Counts{Exchanges: r.exchanges.Load(), Exchanged: r.bytes.Load(), Sends: r.sends.Load(), Sent: r.sent.Load()}
}

// Failed returns the asynchronous error of the group: a lost rank or link.
func (r *NCCLGroup) Failed() error {
	for _, comm := range []*atomic.Uintptr{&r.comm, &r.tensor} {
		var code int32
		if err := r.call("ncclCommGetAsyncError", r.n.calls.asyncError, comm.Load(), uintptr(unsafe.Pointer(&code))); err != nil {
			return err
		}
		if code != 0 && code != ncclInProgress {
			return fmt.Errorf("%w: %w", device.ErrComm, r.n.describe("NCCL", code))
		}
	}
	return nil
}

// Abort aborts pending work: calls that wait for another rank return, on any thread.
// The NCCLGroup cannot be used afterwards.
func (r *NCCLGroup) Abort() { r.leave(r.n.calls.commAbort) }

// Close leaves the group when all its work has finished.
func (r *NCCLGroup) Close() { r.leave(r.n.calls.commDestroy) }

// leave calls a function once for each communicator.
func (r *NCCLGroup) leave(f uintptr) {
	all, tensor := r.comm.Swap(0), r.tensor.Swap(0)
	if tensor != 0 && tensor != all {
		purego.SyscallN(f, tensor)
	}
	if all != 0 {
		purego.SyscallN(f, all)
	}
}

// call is like check, but first returns an error if the group was not joined or was
// aborted.
func (r *NCCLGroup) call(name string, f uintptr, args ...uintptr) error {
	if r.comm.Load() == 0 {
		return fmt.Errorf("%w: %s after the group of GPUs was closed", device.ErrComm, name)
	}
	if err := r.n.check(name, f, args...); err != nil {
		return fmt.Errorf("%w: %w", device.ErrComm, err)
	}
	return nil
}

// check calls a function and converts its result to an error.
func (n *NCCL) check(name string, f uintptr, args ...uintptr) error {
	code, _, _ := purego.SyscallN(f, args...)
	if int32(code) == 0 {
		return nil
	}
	return n.describe(name, int32(code))
}

func (n *NCCL) describe(name string, code int32) error {
	what, _, _ := purego.SyscallN(n.calls.errorString, uintptr(uint32(code)))
	more, _, _ := purego.SyscallN(n.calls.lastError, 0)
	text := cString(what)
	if last := strings.TrimSpace(cString(more)); last != "" {
		text += ": " + last
	}
	return fmt.Errorf("%s: %s (%d)", name, text, code)
}

// cString copies a C string, truncated to a few thousand bytes.
func cString(at uintptr) string {
	if at == 0 {
		return ""
	}
	p := *(*unsafe.Pointer)(unsafe.Pointer(&at))
	var b []byte
	for i := range 4096 {
		c := *(*byte)(unsafe.Add(p, i))
		if c == 0 {
			break
		}
		b = append(b, c)
	}
	return string(b)
}
