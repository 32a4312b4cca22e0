package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/iflowc/iflowc/ir/tensor"
)

// An integerMatrix is a stored matrix of codes: value = scale·(code − zero). A
// group of columns of a row shares scale and zero.
type integerMatrix struct {
	out, in, bits int
	group         []int                                    // group of each column
	codes         func(o int, codes []uint8)               // codes of row o
	params        func(o, group int) (scale, zero float32) // of a group of row o
}

// Types of scales, and of packed codes.
var (
	floatTypes = []tensor.DType{tensor.F16, tensor.BF16, tensor.F32}
	wordTypes  = []tensor.DType{tensor.I32}
)

// adoptIntegers replaces the tensors of GPTQ and AWQ: qweight, qzeros and scales
// [groups, out]. GPTQ (Frantar et al. 2022, in the format of AutoGPTQ and
// GPTQModel) packs codes along the inputs: qweight [in·bits/32, out]. AWQ (Lin et
// al. 2023, layout "gemm") packs them along the outputs: qweight [in, out/8].
func adoptIntegers(s *Set, base string, c quantConfig) error {
	q, err := s.need(base+".qweight", base, wordTypes...)
	if err != nil {
		return err
	}
	zeros, err := s.need(base+".qzeros", q.Name, wordTypes...)
	if err != nil {
		return err
	}
	scales, err := s.need(base+".scales", q.Name, floatTypes...)
	if err != nil {
		return err
	}
	if len(q.Shape) != 2 || len(scales.Shape) != 2 || len(zeros.Shape) != 2 || q.Shape[0] == 0 || scales.Shape[0] == 0 || zeros.Shape[0] != scales.Shape[0] {
		return fmt.Errorf("%s: %s of shape %v with scales %v and qzeros %v; want matrices with as many rows of scales as of zeros", q.File, q.Name, q.Shape, scales.Shape, zeros.Shape)
	}
	gidx, hasIndex := s.take(base + ".g_idx")
	if q.Shape[1] == scales.Shape[1] {
		var columns *entry
		if hasIndex {
			columns = &gidx
		}
		return s.adoptGPTQ(base, q, zeros, scales, columns, c)
	}
	if q.Shape[1]*8 == scales.Shape[1] && (c.Version == "" || c.Version == "gemm" || c.Version == "GEMM") {
		return s.adoptAWQ(base, q, zeros, scales)
	}
	return fmt.Errorf("%s: %s of shape %v with scales %v is neither a GPTQ layout nor AWQ's \"gemm\" layout; quantize the original model instead", q.File, q.Name, q.Shape, scales.Shape)
}

func (s *Set) adoptGPTQ(base string, q, zeros, scales entry, gidx *entry, c quantConfig) error {
	out, groups, words := scales.Shape[1], scales.Shape[0], q.Shape[0]
	bits := 0
	if zeros.Shape[1]*32%out == 0 {
		bits = zeros.Shape[1] * 32 / out
	}
	if !slices.Contains([]int{2, 3, 4, 8}, bits) || words*32%bits != 0 || words*32/bits%groups != 0 {
		return fmt.Errorf("%s: %s of shape %v with scales %v and qzeros %v is not a matrix of 2, 3, 4 or 8 bits", q.File, q.Name, q.Shape, scales.Shape, zeros.Shape)
	}
	m := &integerMatrix{out: out, in: words * 32 / bits, bits: bits}
	var err error
	if m.group, err = groupsOf(gidx, m.in, groups); err != nil {
		return err
	}
	data, zp, mask := q.raw(), zeros.raw(), 1<<bits-1
	stored := func(o, g int) int {
		return int(field(o*bits, bits, func(w int) uint32 { return word(zp, g*zeros.Shape[1]+w) }))
	}
	plus := sync.OnceValue(func() int {
		symmetric := c.Symmetric == nil || *c.Symmetric
		return zeroOffset(c.Checkpoint == "gptq_v2", symmetric, bits, out, groups, stored)
	})
	m.codes = func(o int, codes []uint8) {
		for i := range codes {
			codes[i] = uint8(field(i*bits, bits, func(w int) uint32 { return word(data, w*out+o) }))
		}
	}
	m.params = func(o, g int) (float32, float32) {
		return scales.number(g*out + o), float32((stored(o, g) + plus()) & mask)
	}
	return s.adoptMatrix(base, q, m)
}

// zeroOffset returns the difference of a GPTQ matrix' zeros from the stored ones. The first
// format stores zero − 1. But some tools write the zeros of one format under the name of the
// other: if the matrix may be symmetric and all stored zeros are those of a symmetric matrix
// in one of the formats, they are in that format.
func zeroOffset(v2, symmetric bool, bits, out, groups int, stored func(o, g int) int) int {
	middle, first := 1<<(bits-1), stored(0, 0)
	same := symmetric && (first == middle || first == middle-1)
	for g := 0; g < groups && same; g++ {
		for o := 0; o < out && same; o++ {
			same = stored(o, g) == first
		}
	}
	switch {
	case same:
		return middle - first
	case v2:
		return 0
	}
	return 1
}

// awqPlace maps the index of a code among eight adjacent ones to its position in
// AWQ's words.
var awqPlace = [8]int{0, 4, 1, 5, 2, 6, 3, 7}

func (s *Set) adoptAWQ(base string, q, zeros, scales entry) error {
	const bits = 4
	out, groups, in := scales.Shape[1], scales.Shape[0], q.Shape[0]
	if in%groups != 0 || zeros.Shape[1] != q.Shape[1] {
		return fmt.Errorf("%s: %s of shape %v with scales %v and qzeros %v; expected zeros as wide as the codes, and equal groups of inputs", q.File, q.Name, q.Shape, scales.Shape, zeros.Shape)
	}
	m := &integerMatrix{out: out, in: in, bits: bits}
	m.group, _ = groupsOf(nil, in, groups)
	data, zp := q.raw(), zeros.raw()
	at := func(words []byte, row, o int) uint8 {
		return uint8(word(words, row*(out/8)+o/8) >> (bits * awqPlace[o%8]) & 15)
	}
	m.codes = func(o int, codes []uint8) {
		for i := range codes {
			codes[i] = at(data, i, o)
		}
	}
	m.params = func(o, g int) (float32, float32) { return scales.number(g*out + o), float32(at(zp, g, o)) }
	return s.adoptMatrix(base, q, m)
}

// adoptCompressed replaces the "pack-quantized" matrices of compressed-tensors:
// weight_packed [out, in·bits/32], weight_scale [out, groups] and, unless it is symmetric,
// weight_zero_point: [out·bits/32, groups], packed along the outputs, or i8 of [out, groups].
// Codes and packed zeros are those of signed integers plus half of their range.
func adoptCompressed(s *Set, base string, _ quantConfig) error {
	if i := s.index[base+".weight_packed"]; s.entries[i].DType == tensor.U8 {
		return nil // 4-bit floats
	}
	q, err := s.need(base+".weight_packed", base, wordTypes...)
	if err != nil {
		return err
	}
	scales, err := s.need(base+".weight_scale", q.Name, floatTypes...)
	if err != nil {
		return err
	}
	shape, err := s.need(base+".weight_shape", q.Name, tensor.I64, tensor.I32)
	if err != nil {
		return err
	}
	dims := shape.integers()
	if len(dims) != 2 || len(q.Shape) != 2 || len(scales.Shape) != 2 || dims[0] != q.Shape[0] || dims[0] != scales.Shape[0] || dims[0] == 0 || dims[1] == 0 || q.Shape[1]*32%dims[1] != 0 {
		return fmt.Errorf("%s: %s of shape %v with scales %v and weight_shape %v is inconsistent", q.File, q.Name, q.Shape, scales.Shape, dims)
	}
	out, in, groups := dims[0], dims[1], scales.Shape[1]
	bits := q.Shape[1] * 32 / in
	if bits != 4 && bits != 8 || groups == 0 || in%groups != 0 {
		return fmt.Errorf("%s: %s: %d bits in %d groups of %d inputs; want 4 or 8 bits in equal groups", q.File, q.Name, bits, groups, in)
	}
	m := &integerMatrix{out: out, in: in, bits: bits}
	gidx, hasIndex := s.take(base + ".weight_g_idx")
	var columns *entry
	if hasIndex {
		columns = &gidx
	}
	if m.group, err = groupsOf(columns, in, groups); err != nil {
		return err
	}
	zero, err := s.compressedZeros(base, q.Name, out, groups, bits)
	if err != nil {
		return err
	}
	data := q.raw()
	m.codes = func(o int, codes []uint8) {
		for i := range codes {
			codes[i] = uint8(field(i*bits, bits, func(w int) uint32 { return word(data, o*q.Shape[1]+w) }))
		}
	}
	m.params = func(o, g int) (float32, float32) { return scales.number(o*groups + g), zero(o, g) }
	return s.adoptMatrix(base, q, m)
}

// compressedZeros returns the zeros of a matrix of compressed-tensors.
func (s *Set) compressedZeros(base, with string, out, groups, bits int) (func(o, g int) float32, error) {
	middle, name := 1<<(bits-1), base+".weight_zero_point"
	if _, asymmetric := s.index[name]; !asymmetric {
		return func(int, int) float32 { return float32(middle) }, nil
	}
	z, err := s.need(name, with, tensor.I32, tensor.I8)
	if err != nil {
		return nil, err
	}
	raw, rows := z.raw(), out
	if z.DType == tensor.I32 {
		rows = (out*bits + 31) / 32
	}
	if !slices.Equal(z.Shape, []int{rows, groups}) {
		return nil, fmt.Errorf("%s: zeros %q are %s of shape %v; want [%d, %d]", z.File, name, z.DType, z.Shape, rows, groups)
	}
	if z.DType == tensor.I8 {
		return func(o, g int) float32 { return float32(int(int8(raw[o*groups+g])) + middle) }, nil
	}
	return func(o, g int) float32 {
		return float32(field(o*bits, bits, func(w int) uint32 { return word(raw, w*groups+g) }))
	}, nil
}

// groupsOf returns the group of each column: equal ranges, or the values of g_idx. An index
// that puts all inputs into the first of several groups, or into group −1, was never set.
func groupsOf(gidx *entry, in, groups int) ([]int, error) {
	out := make([]int, in)
	if gidx == nil {
		for i := range out {
			out[i] = i / (in / groups)
		}
		return out, nil
	}
	if gidx.DType != tensor.I32 || gidx.Elements() != in {
		return nil, fmt.Errorf("%s: tensor %q is %s of shape %v; expected i32 for each of %d inputs", gidx.File, gidx.Name, gidx.DType, gidx.Shape, in)
	}
	raw := gidx.raw()
	if first := int32(word(raw, 0)); first == -1 || first == 0 && groups > 1 {
		unset := true
		for i := range out {
			unset = unset && int32(word(raw, i)) == first
		}
		if unset {
			return groupsOf(nil, in, groups)
		}
	}
	for i := range out {
		if out[i] = int(int32(word(raw, i))); out[i] < 0 || out[i] >= groups {
			return nil, fmt.Errorf("%s: tensor %q: input %d is in group %d of %d", gidx.File, gidx.Name, i, out[i], groups)
		}
	}
	return out, nil
}

// integers returns the values of a tensor of integers.
func (e *entry) integers() []int {
	raw, out := e.raw(), make([]int, e.Elements())
	for i := range out {
		if e.DType == tensor.I64 {
			out[i] = int(int64(binary.LittleEndian.Uint64(raw[8*i:])))
		} else {
			out[i] = int(int32(word(raw, i)))
		}
	}
	return out
}

func word(data []byte, i int) uint32 { return binary.LittleEndian.Uint32(data[4*i:]) }

// field extracts bits from a stream of words, low bits first. A 3-bit code may
// span two words.
func field(at, bits int, word func(int) uint32) uint32 {
	v := word(at/32) >> (at % 32)
	if rest := 32 - at%32; rest < bits {
		v |= word(at/32+1) << rest
	}
	return v & (1<<bits - 1)
}

// blockTypes are the block types for a number of bits, the largest block first.
var blockTypes = map[int][]tensor.DType{
	2: {tensor.Q2B32}, 3: {tensor.Q3B32}, 4: {tensor.Q4B64, tensor.Q4B32}, 8: {tensor.Q8B64, tensor.Q8B32},
}

// adoptMatrix adds the entry NAME.weight. If every block of columns is in one
// group, the codes are kept, in blocks with base −scale·zero. f16 represents that
// base exactly if the quantization is symmetric, and to 2⁻¹¹ otherwise. If adjacent
// columns are in different groups, the values are quantized again.
func (s *Set) adoptMatrix(base string, like entry, m *integerMatrix) error {
	for _, dt := range blockTypes[m.bits] {
		if m.uniform(dt.Block()) {
			return s.adopted(like, base+".weight", dt, m.out, m.in, m.values, func() []byte { return m.recode(dt) })
		}
	}
	dt := roundedType(m.in)
	s.note("%s: adjacent inputs of %d-bit matrices are in different groups (desc_act), or groups are not whole blocks: these matrices are converted to %s", like.File, m.bits, dt)
	return s.adopted(like, base+".weight", dt, m.out, m.in, m.values, nil)
}

// roundedType is the type of matrices whose codes no block type holds: of 8 bits, whose error
// is small beside that of codes of fewer bits.
func roundedType(in int) tensor.DType {
	if in%tensor.Q8B32T2.Block() != 0 {
		return tensor.F16
	}
	return tensor.Q8B32T2
}

// uniform reports whether every block of columns is in one group.
func (m *integerMatrix) uniform(block int) bool {
	if m.in%block != 0 {
		return false
	}
	for i, g := range m.group {
		if g != m.group[i/block*block] {
			return false
		}
	}
	return true
}

func (m *integerMatrix) recode(dt tensor.DType) []byte {
	size, block := dt.BlockBytes(), dt.Block()
	out := make([]byte, m.out*dt.RowBytes(m.in))
	codes, rest := make([]uint8, m.in), out
	for o := range m.out {
		m.codes(o, codes)
		for i := 0; i < m.in; i += block {
			scale, zero := m.params(o, m.group[i])
			tensor.PutBlockCodes(dt, rest[:size], finiteF16(scale), finiteF16(-scale*zero), codes[i:i+block])
			rest = rest[size:]
		}
	}
	return out
}

// values computes row o.
func (m *integerMatrix) values(o int, x []float32) {
	codes, last := make([]uint8, m.in), -1
	var scale, zero float32
	m.codes(o, codes)
	for i, c := range codes {
		if g := m.group[i]; g != last {
			scale, zero = m.params(o, g)
			last = g
		}
		x[i] = scale * (float32(c) - zero)
	}
}

// finiteF16 rounds to f16, clamped to its range; NaN becomes 0.
func finiteF16(x float32) uint16 {
	if x != x {
		return 0
	}
	return tensor.F32ToF16(float32(math.Max(-tensor.MaxF16, math.Min(tensor.MaxF16, float64(x)))))
}
