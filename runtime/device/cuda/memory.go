//go:build unix

package cuda

import (
	"errors"
	"fmt"
	"unsafe"
)

// A pointer is an address in GPU memory.
type pointer uint64

// alloc allocates n bytes. Errors begin with what.
func (g *GPU) alloc(n int64, what string) (pointer, error) {
	var p pointer
	if n <= 0 {
		n = 256
	}
	err := g.call(fnMemAlloc, uintptr(unsafe.Pointer(&p)), uintptr(n))
	var e *Error
	if errors.As(err, &e) && e.Code == codeOutOfMemory {
		return 0, fmt.Errorf("%s: out of GPU memory: cannot allocate %.1f MB; lower the context, the concurrency or the number of KV cache pages", what, float64(n)/1e6)
	}
	return p, err
}

func (g *GPU) free(p pointer) error {
	if p == 0 {
		return nil
	}
	return g.call(fnMemFree, uintptr(p))
}

// available returns the device's free memory in bytes.
func (g *GPU) available() (int64, error) {
	var left, total uint64
	err := g.call(fnMemGetInfo, uintptr(unsafe.Pointer(&left)), uintptr(unsafe.Pointer(&total)))
	return int64(left), err
}

// Available returns the device's free memory in bytes.
func (g *GPU) Available() (int64, error) {
	if err := g.enter(); err != nil {
		return 0, err
	}
	defer g.leave()
	return g.available()
}

// A stream is a CUDA stream.
type stream uintptr

func (g *GPU) newStream() (stream, error) {
	var s stream
	const nonBlocking = 1
	err := g.call(fnStreamCreate, uintptr(unsafe.Pointer(&s)), nonBlocking)
	return s, err
}

// toDevice enqueues a copy to the GPU. from must lie outside Go's heap and stay
// unchanged until the stream is synchronized.
func (g *GPU) toDevice(to pointer, from []byte, s stream) error {
	if len(from) == 0 {
		return nil
	}
	return g.call(fnMemcpyHtoDAsync, uintptr(to), uintptr(unsafe.Pointer(&from[0])), uintptr(len(from)), uintptr(s))
}

func (g *GPU) toHost(to []byte, from pointer, s stream) error {
	if len(to) == 0 {
		return nil
	}
	return g.call(fnMemcpyDtoHAsync, uintptr(unsafe.Pointer(&to[0])), uintptr(from), uintptr(len(to)), uintptr(s))
}

func (g *GPU) copyWithin(to, from pointer, n int64, s stream) error {
	return g.call(fnMemcpyDtoDAsync, uintptr(to), uintptr(from), uintptr(n), uintptr(s))
}

func (g *GPU) clear(p pointer, n int64, s stream) error {
	return g.call(fnMemsetD8Async, uintptr(p), 0, uintptr(n), uintptr(s))
}

func (g *GPU) wait(s stream) error { return g.call(fnStreamSynchronize, uintptr(s)) }

// An event is a CUDA event.
type event uintptr

func (g *GPU) newEvent() (event, error) {
	var e event
	return e, g.call(fnEventCreate, uintptr(unsafe.Pointer(&e)), 0)
}

func (g *GPU) record(e event, s stream) error { return g.call(fnEventRecord, uintptr(e), uintptr(s)) }

// between returns the time between two completed events in seconds.
func (g *GPU) between(a, b event) (float64, error) {
	var ms float32
	err := g.call(fnEventElapsedTime, uintptr(unsafe.Pointer(&ms)), uintptr(a), uintptr(b))
	return float64(ms) / 1e3, err
}

// upload copies host memory to the GPU through pinned staging memory, in pieces: while
// one is copied, the next is read from its file.
func (g *GPU) upload(to pointer, from []byte, s stream, progress func(done, total int64)) error {
	const piece = 16 << 20
	buffers, err := g.pinned(2*int64(max(min(piece, len(from)), 1)), "weights on their way")
	defer g.unpin(buffers)
	if err != nil {
		return err
	}
	half := len(buffers.Bytes) / 2
	for at, i := 0, 0; at < len(from); at, i = at+piece, i+1 {
		buffer := buffers.Bytes[i%2*half:][:copy(buffers.Bytes[i%2*half:][:half], from[at:])]
		if i > 0 {
			if err := g.wait(s); err != nil {
				return err
			}
			if progress != nil {
				progress(int64(at), int64(len(from)))
			}
		}
		if err := g.toDevice(to+pointer(at), buffer, s); err != nil {
			return err
		}
	}
	if err := g.wait(s); err != nil {
		return err
	}
	if progress != nil {
		progress(int64(len(from)), int64(len(from)))
	}
	return nil
}
