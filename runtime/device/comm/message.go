//go:build unix

package comm

import (
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// A Tag tells messages of one rank to another apart; those of one tag arrive in
// the order in which they were sent.
type Tag int

// tagOwn is IFL_TAG_OWN: lower ones are the steps' own.
const tagOwn = 16

// The runtime's messages. All calls below are made on the thread of MPI, after
// Open.
const (
	Control Tag = tagOwn + iota // from rank 0: what to do
	Reply                       // to rank 0: done, or why not
	Result                      // to rank 0: the outputs of a step
	Pong                        // to rank 0: still there
)

// Send sends a message, which is on its way when Send returns.
func (w *MPI) Send(to int, tag Tag, data []byte) error {
	code, _, _ := purego.SyscallN(w.end.f.mpiPut, w.end.table, uintptr(to), uintptr(tag), uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)))
	return w.failed(int64(int32(code)))
}

// Recv receives a message of as many bytes as data has.
func (w *MPI) Recv(from int, tag Tag, data []byte) error {
	code, _, _ := purego.SyscallN(w.end.f.mpiGet, w.end.table, uintptr(from), uintptr(tag), uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)))
	return w.failed(int64(int32(code)))
}

// Probe gives the size of the message that is there, -1: none is.
func (w *MPI) Probe(from int, tag Tag) (int, error) {
	n, _, _ := purego.SyscallN(w.end.f.mpiLook, w.end.table, uintptr(from), uintptr(tag))
	if int64(n) == -1 {
		return -1, nil
	}
	return int(n), w.failed(int64(n))
}

// Await waits for a message; nil when none has come within the patience.
func (w *MPI) Await(from int, tag Tag, patience time.Duration) ([]byte, error) {
	n, _, _ := purego.SyscallN(w.end.f.mpiAwait, w.end.table, uintptr(from), uintptr(tag), uintptr(patience.Nanoseconds()))
	if err := w.failed(int64(n)); err != nil || n == 0 {
		return nil, err
	}
	data := make([]byte, n)
	return data, w.Recv(from, tag, data)
}

// Flush waits until everything that was sent has arrived, and drops what has
// come and was not asked for: before Leave.
func (w *MPI) Flush() error {
	code, _, _ := purego.SyscallN(w.end.f.mpiFlush, w.end.table)
	return w.failed(int64(int32(code)))
}

// Fail gives a rank up and tells the others.
func (w *MPI) Fail(rank int) { purego.SyscallN(w.end.f.mpiFail, w.end.table, uintptr(rank)) }

// failed spells a negative result.
func (w *MPI) failed(code int64) error {
	if code >= 0 {
		return nil
	}
	return &RankError{Rank: w.end.Failed()}
}
