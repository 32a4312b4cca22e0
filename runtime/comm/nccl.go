//go:build unix

package comm

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// ncclFiles are the names under which the library is looked for.
var ncclFiles = []string{"libnccl.so.2", "libnccl.so"}

// leastNCCL is the oldest version whose ncclCommInitRankScalable takes the job's
// id by its address; before, it could only be passed by value.
const leastNCCL = 22300

// NCCL is the library by which ranks on GPUs exchange what lies in their GPUs'
// memory. It is loaded when a model needs it, never linked.
type NCCL struct {
	Version int // 22300: 2.23.0

	calls ncclCalls
}

type ncclCalls struct {
	getVersion, getUniqueID, commInit, commDestroy uintptr
	send, recv, groupStart, groupEnd               uintptr
	errorString, lastError, asyncError             uintptr
}

// OpenNCCL loads the library from a file, or where the system finds it.
func OpenNCCL(file string) (*NCCL, error) {
	files := ncclFiles
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
	return nil, fmt.Errorf("a model on several GPUs needs NCCL, which cannot be loaded (%s); pip install nvidia-nccl-cu12 (or -cu13) and put its lib folder on LD_LIBRARY_PATH", strings.Join(tried, "; "))
}

func bindNCCL(file string, handle uintptr) (*NCCL, error) {
	n := &NCCL{}
	c := &n.calls
	for _, s := range []struct {
		name string
		at   *uintptr
	}{
		{"ncclGetVersion", &c.getVersion}, {"ncclGetUniqueId", &c.getUniqueID}, {"ncclCommInitRankScalable", &c.commInit},
		{"ncclCommDestroy", &c.commDestroy}, {"ncclSend", &c.send}, {"ncclRecv", &c.recv},
		{"ncclGroupStart", &c.groupStart}, {"ncclGroupEnd", &c.groupEnd},
		{"ncclGetErrorString", &c.errorString}, {"ncclGetLastError", &c.lastError}, {"ncclCommGetAsyncError", &c.asyncError},
	} {
		var err error
		if *s.at, err = purego.Dlsym(handle, s.name); err != nil {
			return nil, fmt.Errorf("%s lacks %s: NCCL %d.%d or later is needed: %w", file, s.name, leastNCCL/10000, leastNCCL/100%100, err)
		}
	}
	var v int32
	if err := n.check(0, "ncclGetVersion", c.getVersion, uintptr(unsafe.Pointer(&v))); err != nil {
		return nil, err
	}
	n.Version = int(v)
	return n, nil
}

// An NCCLID names a job: rank 0 makes it and tells the others.
type NCCLID [128]byte

// ID makes the id of a new job. Where NCCL_COMM_ID names a host and port, it is
// the same on all ranks, and rank 0 listens there.
func (n *NCCL) ID() (id NCCLID, err error) {
	return id, n.check(0, "ncclGetUniqueId", n.calls.getUniqueID, uintptr(unsafe.Pointer(&id)))
}

// A Ring is a rank's membership of a group of GPUs. Its calls put work on a CUDA
// stream and return: what they read and write are addresses in the GPU's memory.
type Ring struct {
	n           *NCCL
	comm        uintptr
	Rank, Ranks int
}

// Join makes this process's current GPU a rank of a job. It returns once all ranks
// have joined.
func (n *NCCL) Join(id NCCLID, ranks, rank int) (*Ring, error) {
	if ranks < 1 || rank < 0 || rank >= ranks {
		return nil, fmt.Errorf("bug: rank %d of %d", rank, ranks)
	}
	runtime.LockOSThread() // the GPU is the thread's
	defer runtime.UnlockOSThread()
	r := &Ring{n: n, Rank: rank, Ranks: ranks}
	err := n.check(0, "ncclCommInitRankScalable", n.calls.commInit, uintptr(unsafe.Pointer(&r.comm)), uintptr(ranks), uintptr(rank), 1, uintptr(unsafe.Pointer(&id)), 0)
	if err != nil {
		return nil, fmt.Errorf("rank %d of %d: %w", rank, ranks, err)
	}
	return r, nil
}

// What NCCL's enumerations are called here.
const (
	ncclUint8      = 1
	ncclInProgress = 7
)

// Send sends bytes to a rank.
func (r *Ring) Send(to int, from uintptr, bytes int, stream uintptr) error {
	return r.n.check(r.comm, "ncclSend", r.n.calls.send, from, uintptr(bytes), ncclUint8, uintptr(to), r.comm, stream)
}

// Recv receives bytes from a rank.
func (r *Ring) Recv(to uintptr, from int, bytes int, stream uintptr) error {
	return r.n.check(r.comm, "ncclRecv", r.n.calls.recv, to, uintptr(bytes), ncclUint8, uintptr(from), r.comm, stream)
}

// Together puts the work of several calls on the streams at once, as sends and
// receives that wait for each other need.
func (r *Ring) Together(calls func() error) error {
	if err := r.n.check(r.comm, "ncclGroupStart", r.n.calls.groupStart); err != nil {
		return err
	}
	err := calls()
	if end := r.n.check(r.comm, "ncclGroupEnd", r.n.calls.groupEnd); err == nil {
		err = end
	}
	return err
}

// Failed says what went wrong behind the calls: a lost rank or link.
func (r *Ring) Failed() error {
	var code int32
	if err := r.n.check(r.comm, "ncclCommGetAsyncError", r.n.calls.asyncError, r.comm, uintptr(unsafe.Pointer(&code))); err != nil {
		return err
	}
	if code == 0 || code == ncclInProgress {
		return nil
	}
	return r.n.spell(r.comm, "NCCL", code)
}

// Close leaves the group when all have finished.
func (r *Ring) Close() {
	if r.comm != 0 {
		purego.SyscallN(r.n.calls.commDestroy, r.comm)
		r.comm = 0
	}
}

// check calls a function and spells its error.
func (n *NCCL) check(comm uintptr, name string, f uintptr, args ...uintptr) error {
	code, _, _ := purego.SyscallN(f, args...)
	if int32(code) == 0 {
		return nil
	}
	return n.spell(comm, name, int32(code))
}

func (n *NCCL) spell(comm uintptr, name string, code int32) error {
	what, _, _ := purego.SyscallN(n.calls.errorString, uintptr(uint32(code)))
	more, _, _ := purego.SyscallN(n.calls.lastError, comm)
	text := cString(what)
	if last := strings.TrimSpace(cString(more)); last != "" {
		text += ": " + last
	}
	return fmt.Errorf("%s: %s (%d)", name, text, code)
}

// cString copies a C string of at most some thousand bytes.
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
