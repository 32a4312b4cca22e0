//go:build unix

package comm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// MPI is this process's membership in an MPI job. MPI requires that one thread makes
// all calls; MPI owns that thread, and Do runs functions on it.
type MPI struct {
	Thread
	Launch

	calls mpiCalls
	final uintptr // address of MPI_Finalize
	abort uintptr // address of MPI_Abort
	end   *Endpoint

	mpichUCX bool // the library is MPICH, uses UCX, and speaks version 1 of PMI with its launcher
}

// mpiCalls mirrors ifl_mpi_calls.
type mpiCalls struct {
	isend, irecv, test, iprobe, getCount uintptr
	comm, byte                           uintptr
}

// Handles of MPICH and its derivatives (MVAPICH, Intel MPI, Cray MPI), which are
// integers. In OpenMPI, handles are addresses of variables of the library.
const (
	mpichWorld        = 0x44000000
	mpichByte         = 0x4c00010d
	mpichErrorsReturn = 0x54000001
)

// threadFunneled is MPI_THREAD_FUNNELED: only one thread makes calls. It has the same
// value in both families.
const threadFunneled = 1

// JoinMPI loads the launcher's MPI library and joins its job, which MPI does when all ranks
// and the launcher answer; say prints that it waits. After RendezvousTimeout, or when ctx
// ends, it gives up.
func JoinMPI(ctx context.Context, l Launch, say func(format string, args ...any)) (*MPI, error) {
	w := &MPI{Launch: l, Thread: newThread()}
	ctx, cancel := context.WithTimeoutCause(ctx, RendezvousTimeout, fmt.Errorf("timeout after %v", RendezvousTimeout))
	defer cancel()
	var state wait
	state.set(nil, "this rank waits for MPI_Init of %s, which needs its launcher and all %d ranks", l.Name, l.Ranks)
	go state.report(ctx, &Member{Say: say})
	joined := make(chan error, 1)
	go w.Do(func() { joined <- w.join() })
	select {
	case err := <-joined:
		if err != nil {
			w.stop()
			return nil, err
		}
		return w, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("MPI_Init of %s has not returned (%w): its launcher or one of the %d ranks does not answer", l.Name, context.Cause(ctx), l.Ranks)
	}
}

func (w *MPI) join() error {
	handle, err := w.open()
	if err != nil {
		return err
	}
	at := func(name string) uintptr {
		a, e := purego.Dlsym(handle, name)
		if e != nil && err == nil {
			err = fmt.Errorf("the MPI library lacks %s: %w", name, e)
		}
		return a
	}
	start, errHandler, size, rank := at("MPI_Init_thread"), at("MPI_Comm_set_errhandler"), at("MPI_Comm_size"), at("MPI_Comm_rank")
	w.calls = mpiCalls{isend: at("MPI_Isend"), irecv: at("MPI_Irecv"), test: at("MPI_Test"), iprobe: at("MPI_Iprobe"), getCount: at("MPI_Get_count")}
	w.final, w.abort = at("MPI_Finalize"), at("MPI_Abort")
	if err != nil {
		return err
	}
	w.calls.comm, w.calls.byte = mpichWorld, mpichByte
	errorsReturn := uintptr(mpichErrorsReturn)
	if world, e := purego.Dlsym(handle, "ompi_mpi_comm_world"); e == nil && world != 0 {
		w.calls.comm, w.calls.byte, errorsReturn = world, at("ompi_mpi_byte"), at("ompi_mpi_errors_return")
		if err != nil {
			return err
		}
	}
	ucx, e := purego.Dlsym(handle, "ucp_worker_progress")
	w.mpichUCX = w.calls.comm == mpichWorld && e == nil && ucx != 0 && speaksPMI1(handle)
	var provided, n, r int32
	if code, _, _ := purego.SyscallN(start, 0, 0, threadFunneled, uintptr(unsafe.Pointer(&provided))); int32(code) != 0 {
		return fmt.Errorf("MPI_Init_thread failed with %d", int32(code))
	}
	purego.SyscallN(errHandler, w.calls.comm, errorsReturn)
	purego.SyscallN(size, w.calls.comm, uintptr(unsafe.Pointer(&n)))
	purego.SyscallN(rank, w.calls.comm, uintptr(unsafe.Pointer(&r)))
	if int(n) != w.Ranks {
		return fmt.Errorf("the launcher %s started %d ranks, but the MPI library reports %d: it belongs to another MPI; set IFLOWC_MPI=FILE to the launcher's library", w.Name, w.Ranks, n)
	}
	w.Rank = int(r)
	return nil
}

// settings returns defaults for variables that MPI libraries read, unless the user has
// set them.
func (w *MPI) settings() map[string]string {
	s := map[string]string{"OMPI_MCA_opal_signal": "", "OMPI_MCA_opal_set_max_sys_limits": ""} // Go's runtime needs to keep its signal handlers
	if w.Local == w.Ranks {
		s["UCX_RNDV_THRESH"] = "inf" // otherwise UCX reads large messages from the sender's memory and exits if that process has died
	}
	return s
}

// open loads the MPI library. Its symbols are made global, because its plug-ins resolve
// their symbols in the process.
func (w *MPI) open() (uintptr, error) {
	for name, value := range w.settings() {
		if _, set := os.LookupEnv(name); !set {
			os.Setenv(name, value)
		}
	}
	var tried []string
	for _, file := range w.libraries {
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() { // the user's: dlopen would wait for a pipe
			tried = append(tried, file+" is not a regular file")
			continue
		}
		handle, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err == nil {
			return handle, nil
		}
		tried = append(tried, err.Error())
	}
	return 0, fmt.Errorf("%s started this program as one of %d ranks, but its MPI library cannot be loaded (%s); install it or set IFLOWC_MPI=FILE",
		w.Name, w.Ranks, strings.Join(tried, "; "))
}

// Open opens this process's endpoint with the C functions of a model's library.
func (w *MPI) Open(lib *cpu.Library, place Place, oversubscribed bool, timeout time.Duration) (*Endpoint, error) {
	f, err := bind(lib)
	if err != nil {
		return nil, err
	}
	wait := spin
	if oversubscribed {
		wait = 0
	}
	calls := w.calls
	mpi, _, _ := purego.SyscallN(f.mpiOpen, uintptr(unsafe.Pointer(&calls)), uintptr(unsafe.Pointer(&place)),
		uintptr(wait.Nanoseconds()), uintptr(timeout.Nanoseconds()))
	if mpi == 0 {
		return nil, errors.New("cannot open the transport between ranks: out of memory, or more than 64 ranks in a tensor-parallel group")
	}
	table, _, _ := purego.SyscallN(f.mpiAt, mpi)
	w.end = &Endpoint{f: f, table: table}
	return w.end, nil
}

// How long Leave and Abort wait for MPI and its launcher, and, without MPI_Finalize, how
// long a rank stays for its last messages to leave.
const (
	finalizeLimit = 10 * time.Second
	abortLimit    = time.Second
	sendTime      = 200 * time.Millisecond
)

// Leave finalizes MPI. Every rank must call it, after Flush.
//
// It does not call MPI_Finalize of MPICH over UCX in a job on several machines. In MPICH
// 4.0, it may wait for UCX messages of a rank that itself already waits for the launcher:
// 14 of 40 jobs on two hosts never ended, with UCX_TLS=tcp,self 23 of 100. A limit is no
// help: MPICH's launcher fails if a process ends while it waits. Instead, the rank tells
// the launcher that it ends, as MPI_Finalize does last.
func (w *MPI) Leave() {
	if _, apart := w.Apart(); apart && w.mpichUCX && w.Name == "MPICH" && os.Getenv("PMI_FD") != "" {
		w.Do(func() { w.Await((w.Rank+1)%w.Ranks, Pong, sendTime) }) // MPI sends within calls only
		w.stop()
		finalizePMI(os.Getenv("PMI_FD")) // if it fails, the launcher says so and ends with another status
		return
	}
	if within(finalizeLimit, func() { w.Do(func() { purego.SyscallN(w.final) }) }) {
		w.stop()
	}
}

// Abort makes the launcher end all ranks, this one with status. If the launcher does not
// respond, it returns after a few seconds.
func (w *MPI) Abort(status int) {
	abort := func() { purego.SyscallN(w.abort, w.calls.comm, uintptr(status)) }
	if !within(abortLimit, func() { w.Do(abort) }) {
		within(abortLimit, abort) // the thread waits for a lost rank
	}
}

// within runs f and reports whether it returned within a limit.
func within(limit time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// Lost returns nil: MPI reports a lost rank only as the error of a call.
func (w *MPI) Lost() <-chan struct{} { return nil }
