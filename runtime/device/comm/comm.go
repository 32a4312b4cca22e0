//go:build unix

// Package comm is how the ranks of a partitioned model reach each other: by
// threads of one process, or by MPI between processes and machines. The step
// itself talks in C (templates/comm, linked into every rank's library); this
// package opens a rank's end of it, and carries what the runtime says beside the
// steps.
package comm

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// DefaultTimeout is how long a rank may say nothing in the middle of a step
// before the others give it up.
const DefaultTimeout = 6 * time.Second

// shortTimeout is the timeout once the process was told to end.
const shortTimeout = 1500 * time.Millisecond

// A Place is where a rank stands (ifl_place). The ranks of a tensor group follow
// each other from First on.
type Place struct{ Rank, Ranks, First, TPSize int32 }

// Counts are what a rank has said so far (ifl_counts): its own parts of
// exchanges with its tensor group, and what it sent to the next stage.
type Counts struct {
	Exchanges, Exchanged int64 // calls, bytes
	Sends, Sent          int64
	waited               int64
}

// Waited is how long the rank's steps waited for those of earlier stages.
func (c Counts) Waited() time.Duration { return time.Duration(c.waited) }

// functions are the C functions of a library's transports.
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

// Table is the C table that a step calls (device.Config.Comm).
func (e *Endpoint) Table() unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&e.table)) }

// Counts are what the rank has said so far.
func (e *Endpoint) Counts() Counts {
	var c Counts
	if !e.closed.Load() {
		purego.SyscallN(e.f.counts, e.table, uintptr(unsafe.Pointer(&c)))
	}
	return c
}

// Failed is the rank that could not be reached, -1: none.
func (e *Endpoint) Failed() int {
	r, _, _ := purego.SyscallN(e.f.failed, e.table)
	return int(int32(r))
}

// ShortenTimeout shortens how long a silent rank is waited for: the process was told to
// end, and perhaps because that rank is gone.
func (e *Endpoint) ShortenTimeout() {
	e.SetTimeout(shortTimeout)
}

// SetTimeout says how long a silent rank is waited for from now on.
func (e *Endpoint) SetTimeout(d time.Duration) {
	if !e.closed.Load() {
		purego.SyscallN(e.f.patience, e.table, uintptr(d.Nanoseconds()))
	}
}

// A RankError says which rank of a partitioned model could not be reached.
type RankError struct {
	Rank int
	Err  error // why, where it is known
}

// LostRank is the rank, for packages that know errors by what they say.
func (e *RankError) LostRank() int { return e.Rank }

func (e *RankError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("rank %d of the model: %v", e.Rank, e.Err)
	}
	return fmt.Sprintf("rank %d of the model does not answer any more; start all ranks again", e.Rank)
}

// Unwrap gives the reason.
func (e *RankError) Unwrap() error { return e.Err }
