package checkpoint

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
)

// ggufTypes maps ggml's type numbers to element types.
var ggufTypes = map[uint32]tensor.DType{
	0: tensor.F32, 1: tensor.F16, 2: tensor.GQ4_0, 3: tensor.GQ4_1, 6: tensor.GQ5_0, 7: tensor.GQ5_1, 8: tensor.GQ8_0,
	10: tensor.GQ2K, 11: tensor.GQ3K, 12: tensor.GQ4K, 13: tensor.GQ5K, 14: tensor.GQ6K,
	20: tensor.GIQ4NL, 23: tensor.GIQ4XS, 34: tensor.GTQ1, 35: tensor.GTQ2, 39: tensor.GMXFP4, 40: tensor.GNVFP4,
	24: tensor.I8, 25: tensor.I16, 26: tensor.I32, 27: tensor.I64, 28: tensor.F64, 30: tensor.BF16,
}

const (
	ggufMaxDims      = 4
	ggufMaxAlignment = 1 << 20
	// Minimum sizes in bytes of a key/value pair and of a tensor description, which
	// bound the counts in the header.
	ggufMinPair   = 8 + 4 + 1
	ggufMinTensor = 8 + 4 + 4 + 8
)

// readGGUF reads GGUF versions 2 and 3: magic, version, counts, key/value pairs,
// tensor descriptions, then aligned data.
func readGGUF(m *mapping) (*contents, error) {
	if string(m.data[:4]) != "GGUF" {
		return nil, m.errorf("an older ggml file (%q); convert it to GGUF", m.data[:4])
	}
	r := &ggufReader{data: m.data, at: 4}
	version, tensors, pairs := r.u32(), r.u64(), r.u64()
	if r.err != nil {
		return nil, m.errorf("gguf: %w", r.err)
	}
	if version > 3 && version&0xffff == 0 {
		return nil, m.errorf("gguf: a big-endian file; convert it to little-endian")
	}
	if version != 2 && version != 3 {
		return nil, m.errorf("gguf: version %d; versions 2 and 3 are supported", version)
	}
	c := &contents{}
	var err error
	if c.meta, err = r.pairs(pairs); err != nil {
		return nil, m.errorf("gguf metadata: %w", err)
	}
	alignment := uint64(32)
	if v, ok := c.meta["general.alignment"]; ok {
		a, isU32 := v.(uint32)
		if !isU32 || a == 0 || a > ggufMaxAlignment || a&(a-1) != 0 {
			return nil, m.errorf("gguf: general.alignment is %v; expected a power of two up to %d, as u32", v, ggufMaxAlignment)
		}
		alignment = uint64(a)
	}
	if c.entries, err = r.tensors(m, tensors, alignment); err != nil {
		return nil, m.errorf("gguf: %w", err)
	}
	return c, nil
}

// A ggufReader reads little-endian fields. After an error it returns zeros.
type ggufReader struct {
	data []byte
	at   uint64
	err  error
}

func (r *ggufReader) left() uint64 { return uint64(len(r.data)) - r.at }

func (r *ggufReader) take(n uint64) []byte {
	if r.err == nil && n > r.left() {
		r.err = fmt.Errorf("need %d bytes at offset %d of a file of %d: %w", n, r.at, len(r.data), errTruncated)
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
func (r *ggufReader) tensors(m *mapping, count, alignment uint64) ([]entry, error) {
	if count > r.left()/ggufMinTensor {
		return nil, fmt.Errorf("%d tensors in a file of %d bytes: %w", count, len(r.data), errTruncated)
	}
	entries := make([]entry, 0, count)
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
		e.File, e.file = m.path, m
		entries = append(entries, e)
	}
	start := (r.at + alignment - 1) / alignment * alignment
	size := uint64(len(r.data))
	for i := range entries {
		e := &entries[i]
		if start > size || uint64(e.Offset) > size-start || uint64(e.Bytes) > size-start-uint64(e.Offset) {
			return nil, fmt.Errorf("tensor %q: %d bytes at data offset %d in a file of %d: %w", e.Name, e.Bytes, e.Offset, size, errTruncated)
		}
		e.Offset += int64(start)
	}
	return entries, checkDisjoint(entries)
}

// tensor reads one description. Its Offset is relative to the start of the data.
func (r *ggufReader) tensor(alignment uint64) (e entry, err error) {
	e.Name = r.str()
	n := r.u32()
	if r.err != nil {
		return e, r.err
	}
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
	dt, ok := ggufTypes[kind]
	if !ok {
		return e, fmt.Errorf("ggml type %d is not supported; supported: F32, F16, BF16, F64, I8 to I64, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and Q2_K to Q6_K", kind)
	}
	if e.Shape, e.Bytes, err = storedSize(dt, dims); err != nil {
		return e, err
	}
	if offset%alignment != 0 || offset > uint64(len(r.data)) {
		return e, fmt.Errorf("offset %d is beyond the file's %d bytes or not a multiple of the alignment %d", offset, len(r.data), alignment)
	}
	e.DType, e.Offset = dt, int64(offset)
	return e, nil
}
