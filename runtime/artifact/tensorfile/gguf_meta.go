package tensorfile

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Type numbers of GGUF metadata values.
const (
	ggufString = 8
	ggufArray  = 9
)

// ggufMaxNesting is the maximum depth of nested arrays; real files use at most two.
const ggufMaxNesting = 4

// A ggufScalar is a value type of fixed size; list returns a typed slice.
type ggufScalar struct {
	size  uint64
	value func(b []byte) any
	list  func(b []byte, n int) any
}

var le = binary.LittleEndian

var ggufScalars = map[uint32]ggufScalar{
	0:  scalar(1, func(b []byte) uint8 { return b[0] }),
	1:  scalar(1, func(b []byte) int8 { return int8(b[0]) }),
	2:  scalar(2, le.Uint16),
	3:  scalar(2, func(b []byte) int16 { return int16(le.Uint16(b)) }),
	4:  scalar(4, le.Uint32),
	5:  scalar(4, func(b []byte) int32 { return int32(le.Uint32(b)) }),
	6:  scalar(4, func(b []byte) float32 { return math.Float32frombits(le.Uint32(b)) }),
	7:  scalar(1, func(b []byte) bool { return b[0] != 0 }),
	10: scalar(8, le.Uint64),
	11: scalar(8, func(b []byte) int64 { return int64(le.Uint64(b)) }),
	12: scalar(8, func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) }),
}

func scalar[T any](size uint64, read func(b []byte) T) ggufScalar {
	return ggufScalar{
		size:  size,
		value: func(b []byte) any { return read(b) },
		list: func(b []byte, n int) any {
			out := make([]T, n)
			for i := range out {
				out[i] = read(b[uint64(i)*size:])
			}
			return out
		},
	}
}

// pairs reads the metadata. Duplicate keys are errors.
func (r *ggufReader) pairs(count uint64) (map[string]any, error) {
	if count > r.left()/ggufMinPair {
		return nil, fmt.Errorf("%d keys in a file of %d bytes: %w", count, r.size, ErrTruncated)
	}
	meta := make(map[string]any, count)
	for i := range count {
		key := r.str()
		kind := r.u32()
		if r.err != nil {
			return nil, fmt.Errorf("key %d of %d: %w", i, count, r.err)
		}
		v, err := r.value(kind, 0)
		if err != nil {
			return nil, fmt.Errorf("key %.100q: %w", key, err)
		}
		if _, dup := meta[key]; dup {
			return nil, fmt.Errorf("key %.100q occurs twice", key)
		}
		meta[key] = v
	}
	return meta, nil
}

func (r *ggufReader) value(kind uint32, depth int) (any, error) {
	if s, ok := ggufScalars[kind]; ok {
		b := r.take(s.size)
		if r.err != nil {
			return nil, r.err
		}
		return s.value(b), nil
	}
	switch kind {
	case ggufString:
		s := r.str()
		return s, r.err
	case ggufArray:
		return r.array(depth)
	}
	return nil, fmt.Errorf("unknown value type %d at offset %d", kind, r.at)
}

// array reads an array as a typed slice, and an array of arrays as []any.
func (r *ggufReader) array(depth int) (any, error) {
	if depth == ggufMaxNesting {
		return nil, fmt.Errorf("arrays nested deeper than %d", ggufMaxNesting)
	}
	kind, n := r.u32(), r.u64()
	if r.err != nil {
		return nil, r.err
	}
	// The minimum size in bytes of an element bounds the count.
	least := uint64(8)
	s, fixed := ggufScalars[kind]
	if fixed {
		least = s.size
	}
	if n > r.left()/least {
		return nil, fmt.Errorf("array of %d elements at offset %d of a file of %d bytes: %w", n, r.at, r.size, ErrTruncated)
	}
	switch {
	case fixed:
		return s.list(r.take(n*s.size), int(n)), nil
	case kind == ggufString:
		out := make([]string, n)
		for i := range out {
			out[i] = r.str()
		}
		return out, r.err
	case kind == ggufArray:
		out := make([]any, n)
		for i := range out {
			v, err := r.array(depth + 1)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	}
	return nil, fmt.Errorf("array of unknown value type %d at offset %d", kind, r.at)
}
