package checkpoint

import (
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
)

// hqqPackings are the layouts of HQQ's codes (hqq.core.bitpack): bits of a code, and codes in
// a word of the given bytes.
var hqqPackings = map[string]struct{ bits, per, bytes int }{
	"8bit_u8": {8, 1, 1}, "4bit_u8": {4, 2, 1}, "3bit_32": {3, 10, 4}, "2bit_u8": {2, 4, 1}, "1bit_u8": {1, 8, 1},
}

// hqqMeta are the names of HQQ's tensors beside W_q that hold the parameters of a matrix.
var hqqMeta = []string{
	"scale", "zero", "shape", "nbits", "axis", "group_size", "packing", "channel_wise", "optimize", "round_zero", "view_as_float", "unpack_view_dtype",
	"compute_dtype", "quant_scale", "quant_zero", "offload_meta", "stores_quant_config", "encoded_state_dict",
}

// An hqqMatrix is a matrix of HQQ (Badri and Shaji 2023): value = scale·(code − zero). Its
// elements, in their order, form a matrix of rows × cols, in which each row (axis 1) or each
// column (axis 0) is a group.
type hqqMatrix struct {
	words       entry
	scale, zero entry
	out, in     int
	rows, cols  int
	axis        int
	bits, per   int // codes in a word
	bytes       int // of a word
}

// adoptHQQ replaces the tensors of HQQ.
func adoptHQQ(s *Set, base string, _ quantConfig) error {
	m := &hqqMatrix{}
	var err error
	if m.words, err = s.need(base+".W_q", base, tensor.U8, tensor.I32, tensor.F16, tensor.BF16, tensor.F32); err != nil {
		return err
	}
	meta := map[string]*entry{}
	for _, name := range hqqMeta {
		if e, ok := s.take(base + "." + name); ok {
			meta[name] = &e
		}
	}
	if err := m.read(meta); err != nil {
		return fmt.Errorf("%s: %s: %w", m.words.File, m.words.Name, err)
	}
	block := 0
	if m.axis == 1 && m.in%m.cols == 0 {
		block = m.cols
	}
	if block == 0 {
		dt := roundedType(m.in)
		s.note("%s: matrices whose groups are not parts of rows (HQQ, axis 0) are converted to %s", m.words.File, dt)
		return s.adopted(m.words, base+".weight", dt, m.out, m.in, m.values, nil)
	}
	im := &integerMatrix{out: m.out, in: m.in, bits: max(m.bits, 2)}
	if im.group, err = groupsOf(nil, m.in, m.in/block); err != nil {
		return err
	}
	im.codes = func(o int, codes []uint8) {
		for i := range codes {
			codes[i] = m.code(o*m.in + i)
		}
	}
	im.params = func(o, g int) (float32, float32) { return m.group(o*m.in + g*block) }
	return s.adoptMatrix(base, m.words, im)
}

// read checks the parameters of a matrix.
func (m *hqqMatrix) read(meta map[string]*entry) error {
	for _, name := range []string{"scale", "zero", "shape", "packing"} {
		if meta[name] == nil {
			return fmt.Errorf("has no matching %s; the files are incomplete", name)
		}
	}
	for _, name := range []string{"quant_scale", "quant_zero"} {
		if e := meta[name]; e != nil && slices.ContainsFunc(e.raw(), func(b byte) bool { return b != 0 }) {
			return fmt.Errorf("%s is set: scales that are quantized themselves are not supported; quantize the original model instead", name)
		}
	}
	m.scale, m.zero = *meta["scale"], *meta["zero"]
	p, known := hqqPackings[string(meta["packing"].raw())]
	dims := meta["shape"]
	if !known || dims.DType != tensor.I64 || dims.Elements() != 2 {
		return fmt.Errorf("packing %.20q with a shape of %d %s; want a matrix in one of hqq's layouts", meta["packing"].raw(), dims.Elements(), dims.DType)
	}
	shape := dims.integers()
	m.out, m.in, m.bits, m.per, m.bytes = shape[0], shape[1], p.bits, p.per, p.bytes
	if min(m.out, m.in) < 1 || max(m.out, m.in) > math.MaxInt32 {
		return fmt.Errorf("shape is %v", shape)
	}
	number := func(name string, without int) int {
		if e := meta[name]; e != nil && e.DType == tensor.I64 && e.Elements() == 1 {
			return e.integers()[0]
		}
		return without
	}
	n := m.out * m.in
	switch m.axis = number("axis", 1); m.axis {
	case 1:
		m.cols = number("group_size", m.in)
		m.rows = n / max(m.cols, 1)
	case 0:
		m.rows = number("group_size", m.out)
		m.cols = n / max(m.rows, 1)
	}
	groups := m.rows
	if m.axis == 0 {
		groups = m.cols
	}
	words := (m.rows + m.per - 1) / m.per * m.cols
	if min(m.rows, m.cols) < 1 || m.rows*m.cols != n || int64(words*m.bytes) != m.words.Bytes {
		return fmt.Errorf("%d bytes for %v in groups of axis %d, %d by %d; want %d", m.words.Bytes, shape, m.axis, m.rows, m.cols, words*m.bytes)
	}
	for _, e := range []*entry{&m.scale, &m.zero} {
		if count := e.Elements(); !slices.Contains(floatTypes, e.DType) || count != groups && count != 1 {
			return fmt.Errorf("%q is %s of shape %v; want one number for each of %d groups", e.Name, e.DType, e.Shape, groups)
		}
	}
	return nil
}

// code returns the code of element e. The rows of the groups' matrix are divided into as many
// equal parts as a word has codes; the first part is in the upper bits.
func (m *hqqMatrix) code(e int) uint8 {
	row, col := e/m.cols, e%m.cols
	parts := (m.rows + m.per - 1) / m.per
	at := row%parts*m.cols + col
	v := uint32(0)
	if raw := m.words.raw(); m.bytes == 4 {
		v = word(raw, at)
	} else {
		v = uint32(raw[at])
	}
	return uint8(v >> (m.bits * (m.per - 1 - row/parts)) & (1<<m.bits - 1))
}

// group returns scale and zero of the group of element e.
func (m *hqqMatrix) group(e int) (scale, zero float32) {
	g := e / m.cols
	if m.axis == 0 {
		g = e % m.cols
	}
	at := func(t *entry) float32 { return t.number(min(g, t.Elements()-1)) }
	return at(&m.scale), at(&m.zero)
}

func (m *hqqMatrix) values(o int, x []float32) {
	for i := range x {
		scale, zero := m.group(o*m.in + i)
		x[i] = scale * (float32(m.code(o*m.in+i)) - zero)
	}
}
