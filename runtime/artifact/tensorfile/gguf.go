package tensorfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// GGUFTypes maps ggml's type numbers to element types.
var GGUFTypes = map[uint32]dtype.Type{
	0: dtype.F32, 1: dtype.F16, 2: dtype.GQ4_0, 3: dtype.GQ4_1, 6: dtype.GQ5_0, 7: dtype.GQ5_1, 8: dtype.GQ8_0,
	10: dtype.GQ2K, 11: dtype.GQ3K, 12: dtype.GQ4K, 13: dtype.GQ5K, 14: dtype.GQ6K,
	20: dtype.GIQ4NL, 23: dtype.GIQ4XS, 34: dtype.GTQ1, 35: dtype.GTQ2, 39: dtype.GMXFP4, 40: dtype.GNVFP4, 41: dtype.GQ1_0, 42: dtype.GQ2_0,
	16: dtype.GIQ2XXS, 17: dtype.GIQ2XS, 18: dtype.GIQ3XXS, 19: dtype.GIQ1S, 21: dtype.GIQ3S, 22: dtype.GIQ2S, 29: dtype.GIQ1M,
	24: dtype.I8, 25: dtype.I16, 26: dtype.I32, 27: dtype.I64, 28: dtype.F64, 30: dtype.BF16,
}

const (
	ggufMaxDims      = 4
	ggufMaxAlignment = 1 << 20
	// Minimum sizes in bytes of a key/value pair and of a tensor description, which
	// bound the counts in the header.
	ggufMinPair   = 8 + 4 + 1
	ggufMinTensor = 8 + 4 + 4 + 8
)

// GGUF reads the header of a GGUF file of version 2 or 3: magic, version, counts,
// key/value pairs, tensor descriptions. The file has size bytes and begins with head,
// which holds at least the header.
func GGUF(head []byte, size int64) (*File, error) {
	if len(head) < 4 || string(head[:4]) != "GGUF" {
		return nil, fmt.Errorf("an older ggml file (%q); convert it to GGUF", head[:min(4, len(head))])
	}
	r := &ggufReader{data: head, size: uint64(size), at: 4}
	version, tensors, pairs := r.u32(), r.u64(), r.u64()
	if r.err != nil {
		return nil, fmt.Errorf("gguf: %w", r.err)
	}
	if version > 3 && version&0xffff == 0 {
		return nil, errors.New("gguf: a big-endian file; convert it to little-endian")
	}
	if version != 2 && version != 3 {
		return nil, fmt.Errorf("gguf: version %d; versions 2 and 3 are supported", version)
	}
	f := &File{}
	var err error
	if f.Meta, err = r.pairs(pairs); err != nil {
		return nil, fmt.Errorf("gguf metadata: %w", err)
	}
	alignment := uint64(32)
	if v, ok := f.Meta["general.alignment"]; ok {
		a, isU32 := v.(uint32)
		if !isU32 || a == 0 || a > ggufMaxAlignment || a&(a-1) != 0 {
			return nil, fmt.Errorf("gguf: general.alignment is %.40s; expected a power of two up to %d, as u32", fmt.Sprint(v), ggufMaxAlignment)
		}
		alignment = uint64(a)
	}
	if f.Tensors, err = r.tensors(tensors, alignment); err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	return f, nil
}

// A ggufReader reads little-endian fields. After an error it returns zeros.
type ggufReader struct {
	data []byte
	size uint64 // of the file
	at   uint64
	err  error
}

func (r *ggufReader) left() uint64 { return uint64(len(r.data)) - r.at }

func (r *ggufReader) take(n uint64) []byte {
	if r.err == nil && n > r.left() {
		r.err = fmt.Errorf("need %d bytes at offset %d of a file of %d: %w", n, r.at, r.size, ErrTruncated)
	}
	if r.err != nil {
		return nil
	}
	b := r.data[r.at : r.at+n]
	r.at += n
	return b
}

func (r *ggufReader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *ggufReader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *ggufReader) str() string { return string(r.take(r.u64())) }

// tensors reads the tensor descriptions and checks every range against the file.
func (r *ggufReader) tensors(count, alignment uint64) ([]Tensor, error) {
	if count > r.left()/ggufMinTensor {
		return nil, fmt.Errorf("%d tensors in a file of %d bytes: %w", count, r.size, ErrTruncated)
	}
	tensors := make([]Tensor, 0, count)
	seen := make(map[string]bool, count)
	for i := range count {
		e, err := r.tensor(alignment)
		if err != nil {
			return nil, fmt.Errorf("tensor %d of %d (%q): %w", i, count, e.Name, err)
		}
		if seen[e.Name] {
			return nil, fmt.Errorf("tensor %q occurs twice", e.Name)
		}
		seen[e.Name] = true
		tensors = append(tensors, e)
	}
	start := (r.at + alignment - 1) / alignment * alignment
	size := r.size
	for i := range tensors {
		e := &tensors[i]
		if start > size || uint64(e.Offset) > size-start || uint64(e.Bytes) > size-start-uint64(e.Offset) {
			return nil, fmt.Errorf("tensor %q: %d bytes at data offset %d in a file of %d: %w", e.Name, e.Bytes, e.Offset, size, ErrTruncated)
		}
		e.Offset += int64(start)
	}
	return tensors, checkDisjoint(tensors)
}

// tensor reads one description. Its Offset is relative to the start of the data.
func (r *ggufReader) tensor(alignment uint64) (e Tensor, err error) {
	name := r.str()
	n := r.u32()
	if r.err != nil {
		return e, r.err
	}
	if err := CheckName(name); err != nil {
		return e, err
	}
	e.Name = name
	if n > ggufMaxDims {
		return e, fmt.Errorf("%d dimensions; want at most %d", n, ggufMaxDims)
	}
	dims := make([]uint64, n)
	for i := range dims {
		dims[i] = r.u64()
	}
	slices.Reverse(dims) // the file stores the innermost dimension first
	kind, offset := r.u32(), r.u64()
	if r.err != nil {
		return e, r.err
	}
	dt, ok := GGUFTypes[kind]
	if !ok {
		return e, fmt.Errorf("ggml type %d is not supported; supported: F32, F16, BF16, F64, I8 to I64, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and Q2_K to Q6_K", kind)
	}
	if e.Shape, e.Bytes, err = storedSize(dt, dims); err != nil {
		return e, err
	}
	if offset%alignment != 0 || offset > r.size {
		return e, fmt.Errorf("offset %d is beyond the file's %d bytes or not a multiple of the alignment %d", offset, r.size, alignment)
	}
	e.DType, e.Offset = dt, int64(offset)
	return e, nil
}
