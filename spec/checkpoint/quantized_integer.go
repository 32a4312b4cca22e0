package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
)

// An integerMatrix is a stored matrix of codes: value = scale·(code − zero). A
// group of columns of a row shares scale and zero.
type integerMatrix struct {
	out, in, bits int
	group         []int // group of each column
	open          func() integerRows
}

// integerRows accesses the rows of an opened matrix.
type integerRows struct {
	codes  func(o int, codes []uint8)            // codes of row o
	params func(o, group int) (float32, float32) // returns scale and zero
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
	m.open = func() integerRows {
		data, zp, sc := q.raw(), zeros.raw(), scales.floats()
		plus := 1 // the first format stores zero − 1
		if c.Checkpoint == "gptq_v2" {
			plus = 0
		}
		mask := 1<<bits - 1
		codes := func(o int, codes []uint8) {
			for i := range codes {
				codes[i] = uint8(field(i*bits, bits, func(w int) uint32 { return word(data, w*out+o) }))
			}
		}
		params := func(o, g int) (float32, float32) {
			z := int(field(o*bits, bits, func(w int) uint32 { return word(zp, g*zeros.Shape[1]+w) }))
			return sc[g*out+o], float32((z + plus) & mask)
		}
		return integerRows{codes, params}
	}
	return s.adoptMatrix(base, q, m)
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
	m.open = func() integerRows {
		data, zp, sc := q.raw(), zeros.raw(), scales.floats()
		at := func(words []byte, row, o int) uint8 {
			return uint8(word(words, row*(out/8)+o/8) >> (bits * awqPlace[o%8]) & 15)
		}
		codes := func(o int, codes []uint8) {
			for i := range codes {
				codes[i] = at(data, i, o)
			}
		}
		params := func(o, g int) (float32, float32) { return sc[g*out+o], float32(at(zp, g, o)) }
		return integerRows{codes, params}
	}
	return s.adoptMatrix(base, q, m)
}

// adoptCompressed replaces the "pack-quantized" matrices of compressed-tensors:
// weight_packed [out, in·bits/32], weight_scale [out, groups], symmetric.
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
	if _, asym := s.index[base+".weight_zero_point"]; asym {
		return fmt.Errorf("%s: %s has zero points; only symmetric matrices of compressed-tensors are supported", q.File, base)
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
	m.open = func() integerRows {
		data, sc := q.raw(), scales.floats()
		codes := func(o int, codes []uint8) {
			for i := range codes {
				codes[i] = uint8(field(i*bits, bits, func(w int) uint32 { return word(data, o*q.Shape[1]+w) }))
			}
		}
		zero := float32(int(1) << (bits - 1))
		params := func(o, g int) (float32, float32) { return sc[o*groups+g], zero }
		return integerRows{codes, params}
	}
	return s.adoptMatrix(base, q, m)
}

// groupsOf returns the group of each column: equal ranges, or the values of g_idx.
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
			return s.adopted(like, base+".weight", dt, m.out, m.in, func() []byte { return m.recode(dt) })
		}
	}
	dt := tensor.Q8B32T2
	if m.in%dt.Block() != 0 {
		dt = tensor.F16
	}
	s.note("%s: adjacent inputs of %d-bit matrices are in different groups (desc_act), or groups are not whole blocks: these matrices are converted to %s", like.File, m.bits, dt)
	return s.adopted(like, base+".weight", dt, m.out, m.in, func() []byte { return m.encode(dt) })
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
	codes, rows := make([]uint8, m.in), m.open()
	rest := out
	for o := range m.out {
		rows.codes(o, codes)
		for i := 0; i < m.in; i += block {
			scale, zero := rows.params(o, m.group[i])
			tensor.PutBlockCodes(dt, rest[:size], finiteF16(scale), finiteF16(-scale*zero), codes[i:i+block])
			rest = rest[size:]
		}
	}
	return out
}

func (m *integerMatrix) encode(dt tensor.DType) []byte {
	out := make([]byte, m.out*dt.RowBytes(m.in))
	codes, x, rows := make([]uint8, m.in), make([]float32, m.in), m.open()
	for o := range m.out {
		rows.codes(o, codes)
		for i, c := range codes {
			scale, zero := rows.params(o, m.group[i])
			x[i] = scale * (float32(c) - zero)
		}
		if err := tensor.Encode(out[o*dt.RowBytes(m.in):][:dt.RowBytes(m.in)], dt, x); err != nil {
			panic("bug: " + err.Error())
		}
	}
	return out
}

// finiteF16 rounds to f16, clamped to its range; NaN becomes 0.
func finiteF16(x float32) uint16 {
	if x != x {
		return 0
	}
	return tensor.F32ToF16(float32(math.Max(-tensor.MaxF16, math.Min(tensor.MaxF16, float64(x)))))
}
