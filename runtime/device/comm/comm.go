//go:build unix

// Package comm connects the ranks of a partitioned model: by shared memory between
// threads of one process, or by MPI, TCP and NCCL between processes and machines. The
// steps communicate in C (templates/comm, linked into every rank's library). This
// package opens a rank's endpoint for them, and carries the runtime's own messages.
package comm

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// DefaultTimeout is the default limit for the silence of a rank during a step, after
// which the other ranks treat it as lost.
const DefaultTimeout = 6 * time.Second

// shortTimeout is the timeout after the process was asked to exit.
const shortTimeout = 1500 * time.Millisecond

// A Place is the position of a rank (ifl_place): its number, the number of ranks, and
// the first rank and size of its tensor-parallel group, whose ranks are consecutive.
type Place struct{ Rank, Ranks, First, TPSize int32 }

// Counts is the communication volume of a rank (ifl_counts): what it contributed to
// exchanges in its tensor-parallel group, and what it sent to the next pipeline stage.
type Counts struct {
	Exchanges, Exchanged int64 // calls, bytes
	Sends, Sent          int64
	waited               int64
}

// Waited returns how long the rank's steps waited for earlier pipeline stages.
func (c Counts) Waited() time.Duration { return time.Duration(c.waited) }

// Minus returns the volume since before.
func (c Counts) Minus(before Counts) Counts {
	return Counts{c.Exchanges - before.Exchanges, c.Exchanged - before.Exchanged, c.Sends - before.Sends, c.Sent - before.Sent, c.waited - before.waited}
}

// functions are the addresses of a library's C transport functions.
type functions struct {
	counts, failed, patience          uintptr
	hubOpen, hubAt, hubFail, hubClose uintptr
	mpiOpen, mpiAt, mpiClose, mpiFail uintptr
	mpiPut, mpiGet, mpiLook, mpiAwait uintptr
	mpiFlush                          uintptr
}

func bind(lib *cpu.Library) (*functions, error) {
	f := &functions{}
	for _, s := range []struct {
		name string
		at   *uintptr
	}{
		{"ifl_comm_counts", &f.counts}, {"ifl_comm_failed", &f.failed}, {"ifl_comm_patience", &f.patience},
		{"ifl_hub_open", &f.hubOpen}, {"ifl_hub_at", &f.hubAt}, {"ifl_hub_fail", &f.hubFail}, {"ifl_hub_close", &f.hubClose},
		{"ifl_mpi_open", &f.mpiOpen}, {"ifl_mpi_at", &f.mpiAt}, {"ifl_mpi_close", &f.mpiClose}, {"ifl_mpi_fail", &f.mpiFail},
		{"ifl_mpi_put", &f.mpiPut}, {"ifl_mpi_get", &f.mpiGet}, {"ifl_mpi_look", &f.mpiLook}, {"ifl_mpi_await", &f.mpiAwait},
		{"ifl_mpi_flush", &f.mpiFlush},
	} {
		var err error
		if *s.at, err = lib.Symbol(s.name); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// An Endpoint is one rank's end of a transport.
type Endpoint struct {
	f      *functions
	table  uintptr // ifl_comm
	closed atomic.Bool
}

// Table returns the C function table for steps (device.Config.Comm).
func (e *Endpoint) Table() unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&e.table)) }

// Counts returns the communication volume so far.
func (e *Endpoint) Counts() Counts {
	var c Counts
	if !e.closed.Load() {
		purego.SyscallN(e.f.counts, e.table, uintptr(unsafe.Pointer(&c)))
	}
	return c
}

// Failed returns the lost rank, or -1.
func (e *Endpoint) Failed() int {
	r, _, _ := purego.SyscallN(e.f.failed, e.table)
	return int(int32(r))
}

// ShortenTimeout shortens the timeout for silent ranks. Call it when the process was
// asked to exit, perhaps because a rank is gone.
func (e *Endpoint) ShortenTimeout() {
	e.SetTimeout(shortTimeout)
}

// SetTimeout sets the timeout for silent ranks.
func (e *Endpoint) SetTimeout(d time.Duration) {
	if !e.closed.Load() {
		purego.SyscallN(e.f.patience, e.table, uintptr(d.Nanoseconds()))
	}
}

// A RankError reports which rank of a partitioned model was lost or failed.
type RankError struct {
	Rank int
	Err  error // the cause; nil: the rank does not respond
}

// LostRank returns the rank. It lets packages detect the error without importing comm.
func (e *RankError) LostRank() int { return e.Rank }

func (e *RankError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("rank %d of the model: %v", e.Rank, e.Err)
	}
	return fmt.Sprintf("rank %d of the model does not respond; restart all ranks", e.Rank)
}

// Unwrap returns the cause.
func (e *RankError) Unwrap() error { return e.Err }
