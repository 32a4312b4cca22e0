//go:build unix

package device

import "unsafe"

// A slab hands out aligned parts of one region. With no region it only adds
// sizes up, so the same layout code serves both passes.
type slab struct {
	bytes []byte
	at    int64
}

// cut returns n bytes aligned to 64.
func (s *slab) cut(n int64) []byte {
	s.at = (s.at + 63) &^ 63
	from := s.at
	s.at += n
	if s.bytes == nil || n == 0 {
		return nil
	}
	return s.bytes[from:s.at:s.at]
}

func (s *slab) ints(n int) []int32       { return view[int32](s.cut(int64(n) * 4)) }
func (s *slab) floats(n int64) []float32 { return view[float32](s.cut(n * 4)) }
func (s *slab) words(n int) []uint64     { return view[uint64](s.cut(int64(n) * 8)) }

// view reinterprets mapped bytes as whole numbers, floats, or both.
func view[T int32 | float32 | uint64 | best](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(*new(T))))
}

// pointer is the address of a slice's first element, nil when empty.
func pointer[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }
