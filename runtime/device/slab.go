//go:build unix

package device

import "unsafe"

// A Slab hands out parts of one region, aligned to 64 bytes. Without Bytes it
// only adds sizes up, so that the same code measures and lays out.
type Slab struct {
	Bytes []byte
	size  int64
}

// Map reserves a region for all that was measured. It has ordinary pages: laid
// out for the largest step, of which most steps touch the head of each part.
func (s *Slab) Map(what string) (*Region, error) {
	r, err := Map(s.size+64, what)
	if err == nil {
		r.SmallPages()
	}
	return r, err
}

// Carve takes n elements from a slab, nil where it only measures. T must hold no
// pointers into Go's heap.
func Carve[T any](s *Slab, n int) []T {
	at := (s.size + 63) &^ 63
	s.size = at + int64(n)*int64(unsafe.Sizeof(*new(T)))
	if s.Bytes == nil || n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&s.Bytes[at:s.size][0])), n)
}

// Pointer is the address of a slice's first element, nil when it has no memory.
func Pointer[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }
