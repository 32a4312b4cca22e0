package checkpoint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// A fourBits is a tensor of bitsandbytes with 4-bit codes for levels of a table (NF4: Dettmers
// et al. 2023, §3; FP4), scaled by blocks of its elements in order. The first of two codes is
// in the upper bits of a byte.
type fourBits struct {
	codes  []byte
	levels [16]float32
	state  bnbState
	absmax entry // one number for each block, or codes of those with double quantization
	nested struct {
		scale entry // one number for each block of absmax
		table entry // values of its codes
	}
}

// A bnbState is the quantization state that bitsandbytes stores as JSON.
type bnbState struct {
	Type        string  `json:"quant_type"`
	Block       int     `json:"blocksize"`
	Shape       []int   `json:"shape"`
	NestedBlock int     `json:"nested_blocksize"` // 0: absmax is not quantized
	Offset      float32 `json:"nested_offset"`
}

// maxBNBState is the maximum size of a quantization state in bytes.
const maxBNBState = 64 << 10

// adoptFourBits replaces the tensors of bitsandbytes with four bits.
func adoptFourBits(s *Set, base string, _ quantConfig) error {
	name, m := base+".weight", &fourBits{}
	codes, err := s.need(name, base, tensor.U8)
	if err != nil {
		return err
	}
	m.codes = codes.raw()
	for _, kind := range []string{"nf4", "fp4"} {
		if e, ok := s.take(name + ".quant_state.bitsandbytes__" + kind); ok && e.Bytes <= maxBNBState {
			if err := json.Unmarshal(e.raw(), &m.state); err != nil {
				return fmt.Errorf("%s: tensor %q: %w", e.File, e.Name, err)
			}
		}
	}
	table, err := s.need(name+".quant_map", name, tensor.F32)
	if err != nil {
		return err
	}
	if table.Elements() != len(m.levels) {
		return fmt.Errorf("%s: tensor %q of shape %v; want 16 levels", table.File, table.Name, table.Shape)
	}
	for i := range m.levels {
		m.levels[i] = table.number(i)
	}
	if err := m.readScales(s, name); err != nil {
		return err
	}
	shape, n := m.state.Shape, 1
	for _, d := range shape {
		if d < 1 || n > 2*len(m.codes)/d {
			return fmt.Errorf("%s: tensor %q: %d bytes for shape %v", codes.File, name, len(m.codes), shape)
		}
		n *= d
	}
	blocks := 0
	if m.state.Block > 0 {
		blocks = (n + m.state.Block - 1) / m.state.Block
	}
	if len(shape) < 2 || len(m.codes) != (n+1)/2 || m.absmax.Elements() != blocks {
		return fmt.Errorf("%s: tensor %q: %d bytes with %d scales for shape %v in blocks of %d; the files are inconsistent", codes.File, name, len(m.codes), m.absmax.Elements(), shape, m.state.Block)
	}
	cols := shape[len(shape)-1]
	dt := roundedType(cols)
	s.note("%s: matrices of bitsandbytes' %s are converted to %s; use --quant for a smaller type", codes.File, strings.ToUpper(m.state.Type), dt)
	e := entry{Info: Info{Name: name, DType: dt, Shape: slices.Clone(shape), File: codes.File, Offset: codes.Offset, Bytes: int64(dt.RowBytes(cols) * (n / cols))}, file: codes.file}
	e.values = func(r int, x []float32) {
		scale, last := float32(0), -1
		for i := range x {
			at := r*cols + i
			if b := at / m.state.Block; b != last {
				scale, last = m.scale(b), b
			}
			x[i] = scale * m.levels[m.codes[at/2]>>(4-at%2*4)&15]
		}
	}
	s.entries[s.index[name]] = e
	return nil
}

// readScales takes the scales.
func (m *fourBits) readScales(s *Set, name string) (err error) {
	if m.state.NestedBlock == 0 {
		m.absmax, err = s.need(name+".absmax", name, tensor.F32, tensor.F16, tensor.BF16)
		return err
	}
	if m.absmax, err = s.need(name+".absmax", name, tensor.U8); err != nil {
		return err
	}
	if m.nested.scale, err = s.need(name+".nested_absmax", name, tensor.F32); err != nil {
		return err
	}
	if m.nested.table, err = s.need(name+".nested_quant_map", name, tensor.F32); err != nil {
		return err
	}
	block, n := m.state.NestedBlock, m.absmax.Elements()
	if block < 0 || m.nested.table.Elements() != 256 || m.nested.scale.Elements() != (n+block-1)/block {
		return fmt.Errorf("%s: tensor %q: %d scales in blocks of %d, with %d scales and %d levels", m.absmax.File, m.absmax.Name, n, block, m.nested.scale.Elements(), m.nested.table.Elements())
	}
	return nil
}

// scale returns the scale of a block of elements.
func (m *fourBits) scale(b int) float32 {
	if m.state.NestedBlock == 0 {
		return m.absmax.number(b)
	}
	x := m.nested.table.number(int(m.absmax.raw()[b])) * m.nested.scale.number(b/m.state.NestedBlock)
	return float32(x) + m.state.Offset
}
