//go:build unix

package device

import "unsafe"

// A Slab allocates parts of one region, aligned to 64 bytes. With nil Bytes it only
// adds up sizes, so the same code measures and lays out.
type Slab struct {
	Bytes []byte
	size  int64
}

// Map maps a region for all parts that were measured. It uses ordinary pages: parts are
// sized for the largest step, and most steps touch only the beginning of each.
func (s *Slab) Map(what string) (*Region, error) {
	r, err := Map(s.size+64, what)
	if err == nil {
		r.SmallPages()
	}
	return r, err
}

// Carve allocates n elements from a slab; it returns nil if the slab only measures. T
// must hold no pointers into Go's heap.
func Carve[T any](s *Slab, n int) []T {
	at := (s.size + 63) &^ 63
	s.size = at + int64(n)*int64(unsafe.Sizeof(*new(T)))
	if s.Bytes == nil || n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&s.Bytes[at:s.size][0])), n)
}

// Pointer returns the address of a slice's first element, or nil if the slice has no
// memory.
func Pointer[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }
