//go:build unix

package comm

import (
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// A Tag distinguishes messages of one sender; messages with equal tags arrive in the
// order in which they were sent.
type Tag int

// tagOwn is IFL_TAG_OWN: steps use the lower tags.
const tagOwn = 16

// Tags of the runtime's messages. All calls below must be made on MPI's thread, after
// Open.
const (
	Control Tag = tagOwn + iota // from rank 0: a command
	Reply                       // to rank 0: success, or the error
	Result                      // to rank 0: the outputs of a step
	Pong                        // to rank 0: sign of life
)

// Send sends a message. It returns when data may be reused.
func (w *MPI) Send(to int, tag Tag, data []byte) error {
	code, _, _ := purego.SyscallN(w.end.f.mpiPut, w.end.table, uintptr(to), uintptr(tag), uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)))
	return w.failed(int64(int32(code)))
}

// Recv receives a message of exactly len(data) bytes.
func (w *MPI) Recv(from int, tag Tag, data []byte) error {
	code, _, _ := purego.SyscallN(w.end.f.mpiGet, w.end.table, uintptr(from), uintptr(tag), uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)))
	return w.failed(int64(int32(code)))
}

// Probe returns the size of a pending message, or -1 if there is none.
func (w *MPI) Probe(from int, tag Tag) (int, error) {
	n, _, _ := purego.SyscallN(w.end.f.mpiLook, w.end.table, uintptr(from), uintptr(tag))
	if int64(n) == -1 {
		return -1, nil
	}
	return int(n), w.failed(int64(n))
}

// Await waits for a message. It returns nil if none arrives within patience.
func (w *MPI) Await(from int, tag Tag, patience time.Duration) ([]byte, error) {
	n, _, _ := purego.SyscallN(w.end.f.mpiAwait, w.end.table, uintptr(from), uintptr(tag), uintptr(patience.Nanoseconds()))
	if err := w.failed(int64(n)); err != nil || n == 0 {
		return nil, err
	}
	data := make([]byte, n)
	return data, w.Recv(from, tag, data)
}

// Flush waits until all sent messages have arrived, and discards unread ones. Call it
// before Leave.
func (w *MPI) Flush() error {
	code, _, _ := purego.SyscallN(w.end.f.mpiFlush, w.end.table)
	return w.failed(int64(int32(code)))
}

// Fail marks a rank as lost and informs the other ranks.
func (w *MPI) Fail(rank int) { purego.SyscallN(w.end.f.mpiFail, w.end.table, uintptr(rank)) }

// failed returns the error for a negative result.
func (w *MPI) failed(code int64) error {
	if code >= 0 {
		return nil
	}
	return &RankError{Rank: w.end.Failed()}
}
