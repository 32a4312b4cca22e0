package checkpoint

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// A smallFormat is a format of 4 or 8 bits whose numbers are multiplied by scales.
type smallFormat struct {
	name   string // in messages
	values []float32
}

// smallFormats maps safetensors' names of types to their formats (Micikevicius et al.
// 2022, table 1; OCP Microscaling Formats 1.0, §5.3).
var smallFormats = map[string]*smallFormat{
	"F8_E4M3": {"8-bit floats", tabulate(e4m3)},
	"F8_E5M2": {"8-bit floats", tabulate(e5m2)},
	"F8_E8M0": {"powers of two", tabulate(e8m0)},
	"F4":      {"4-bit floats", e2m1[:]},
	"I8":      {"8-bit integers", tabulate(func(b uint8) float32 { return float32(int8(b)) })},
}

// e2m1 are the values of a 4-bit float.
var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}

func tabulate(f func(b uint8) float32) []float32 {
	out := make([]float32, 256)
	for b := range out {
		out[b] = f(uint8(b))
	}
	return out
}

func e4m3(b uint8) float32 {
	exp, frac := int(b>>3&15), float64(b&7)
	v := math.Ldexp(1+frac/8, exp-7)
	switch {
	case b&0x7f == 0x7f:
		v = math.NaN()
	case exp == 0:
		v = math.Ldexp(frac, -9)
	}
	return float32(math.Copysign(v, 1-2*float64(b>>7)))
}

// e5m2 decodes a byte, which is the upper byte of an f16.
func e5m2(b uint8) float32 { return tensor.F16ToF32(uint16(b) << 8) }

func e8m0(b uint8) float32 {
	if b == 255 {
		return float32(math.NaN())
	}
	return float32(math.Ldexp(1, int(b)-127))
}

// scaleNames are the names of the scales beside NAME.weight (after NAME) and beside
// fused experts X (after X), as transformers, compressed-tensors, ModelOpt, DeepSeek, Mistral
// and bitsandbytes write them.
var scaleNames = []struct {
	end     string
	divides bool // values are divided by it
	inputs  bool // one per input, which it multiplies
	largest bool // it is the value of the code 127
}{
	{end: ".weight_scale"}, {end: ".weight_scale_inv"}, {end: ".weight_scale_2"}, {end: ".scale"}, {end: ".qscale_weight"},
	{end: ".weight_global_scale", divides: true}, {end: ".pre_quant_scale", inputs: true}, {end: ".SCB", largest: true},
	{end: "_scale"}, {end: "_scale_inv"}, {end: "_weight_scale"}, {end: "_weight_scale_2"}, {end: "_weight_scale_inv"},
}

// unusedScales are the names of scales of activations and of the KV cache; iflowc
// quantizes these itself.
var unusedScales = []string{
	".input_scale", ".input_global_scale", ".activation_scale", ".output_scale", ".qscale_act", ".q_scale", ".k_scale", ".v_scale",
	"_input_scale", "_activation_scale",
}

// adoptFloats replaces matrices of small numbers with scales by what they decode to: FP8
// with scales per tensor, row or block (DeepSeek-V3's weight_scale_inv), NVFP4, MXFP4 and
// MXFP8 of compressed-tensors and ModelOpt, NVFP4 of GGUF, int8. If every scale is a power of two, bf16
// holds the values exactly. Otherwise they are rounded to f16: at most 0.05 % of a value,
// where rounding to e4m3 costs up to 6 %.
func (s *Set) adoptFloats(c quantConfig) error {
	found := false
	for i := range s.entries {
		e := s.entries[i]
		if e.taken || len(e.Shape) == 0 || e.Elements() == 0 {
			continue
		}
		base := strings.TrimSuffix(strings.TrimSuffix(e.Name, "_packed"), ".weight")
		m := &scaledMatrix{codes: e, exact: true}
		if err := m.findScales(s, base, c); err != nil {
			return err
		}
		if m.format = smallFormats[e.stored]; e.stored == "I8" && len(m.scales) == 0 || e.stored == "F8_E8M0" {
			m.format = nil
		}
		switch {
		case m.fp4():
			m.format = smallFormats["F4"]
		case e.DType == tensor.GNVFP4 && len(m.scales) > 0:
			m.format = &smallFormat{name: "4-bit floats"}
		}
		if m.format == nil {
			continue // not a matrix of small numbers: its scales, if any, are tensors of their own
		}
		for _, sc := range m.scales {
			s.take(sc.Name)
		}
		for _, end := range unusedScales {
			s.take(base + end)
		}
		if f, ok := s.take(base + ".weight_format"); ok && slices.ContainsFunc(f.raw(), func(b byte) bool { return b != 0 }) {
			return fmt.Errorf("%s: %q is in an order of bitsandbytes for one kind of GPU; save the model again with bitsandbytes 0.45 or later", e.File, e.Name)
		}
		found = true
		s.entries[i] = m.entry(base)
		s.note("%s: matrices of %s are converted to %s; use --quant for a smaller type", e.File, m.format.name, s.entries[i].DType)
	}
	for i, e := range s.entries {
		named := func(end string) bool { return strings.HasSuffix(e.Name, end) }
		s.entries[i].taken = e.taken || found && e.Elements() == 1 && slices.ContainsFunc(unusedScales, named)
	}
	return nil
}

// A scaledMatrix is a matrix of small numbers, or one for each of several experts.
type scaledMatrix struct {
	codes  entry
	format *smallFormat
	wide   bool // codes holds two numbers per byte
	exact  bool // every scale is a power of two
	scales []scale
}

// A scale is a tensor of factors.
type scale struct {
	entry
	divides bool
	largest bool
	start   func(expert, r int) int // index of the first factor of a row
	span    int                     // columns of a factor
}

// findScales collects the scales beside the codes.
func (m *scaledMatrix) findScales(s *Set, base string, c quantConfig) error {
	for _, n := range scaleNames {
		i, ok := s.index[base+n.end]
		if !ok || s.entries[i].taken || strings.HasSuffix(m.codes.Name, n.end) {
			continue
		}
		sc := scale{entry: s.entries[i], divides: n.divides, largest: n.largest}
		if n.inputs {
			sc.span = 1
		}
		if sc.stored == "U8" {
			sc.stored = "F8_E8M0"
		}
		m.exact = m.exact && sc.stored == "F8_E8M0"
		m.wide = m.wide || packs(m.codes, sc.entry)
		m.scales = append(m.scales, sc)
	}
	if m.wide = m.wide || m.codes.stored == "F4"; !m.known() {
		return nil
	}
	for i := range m.scales {
		if err := m.place(&m.scales[i], c); err != nil {
			return err
		}
	}
	return nil
}

// known reports whether the codes may be small numbers.
func (m *scaledMatrix) known() bool {
	return smallFormats[m.codes.stored] != nil || m.fp4() || m.codes.DType == tensor.GNVFP4
}

// fp4 reports whether the codes are 4-bit floats.
func (m *scaledMatrix) fp4() bool {
	return m.wide && slices.Contains([]string{"U8", "I8", "F4"}, m.codes.stored)
}

// packs reports whether an 8-bit scale belongs to groups of 16 or 32 numbers of four bits
// in bytes: there is one for every 8 or 16 bytes of a row.
func packs(codes, sc entry) bool {
	n := len(codes.Shape)
	if sc.DType != tensor.U8 || len(sc.Shape) != n || n < 2 || !slices.Equal(sc.Shape[:n-1], codes.Shape[:n-1]) {
		return false
	}
	return codes.Shape[n-1] == 8*sc.Shape[n-1] || codes.Shape[n-1] == 16*sc.Shape[n-1]
}

// size returns the numbers of experts, rows and columns.
func (m *scaledMatrix) size() (experts, rows, cols int) {
	shape := m.codes.Shape
	experts, rows, cols = 1, 1, shape[len(shape)-1]
	if len(shape) > 1 {
		rows = shape[len(shape)-2]
	}
	for _, d := range shape[:max(len(shape)-2, 0)] {
		experts *= d
	}
	if m.wide {
		cols *= 2
	}
	return experts, rows, cols
}

// place finds the factors of a row. Blocks are those of the configuration, of 128 by 128,
// or as many equal ones as there are factors.
func (m *scaledMatrix) place(sc *scale, c quantConfig) error {
	experts, rows, cols := m.size()
	shape, n, per := sc.Shape, sc.Elements(), 0 // per: factors of one expert, if experts have their own
	if experts > 1 && len(shape) > 0 && shape[0] == experts && len(shape) != 2 {
		shape, n, per = shape[1:], n/experts, n/experts
	}
	switch {
	case !sc.DType.IsFloat() && smallFormats[sc.stored] == nil:
		return m.misfit(sc)
	case sc.span == 1 && n == cols:
		sc.start = func(int, int) int { return 0 }
		return nil
	case n == 1:
		sc.start, sc.span = func(x, _ int) int { return x * per }, cols
		return nil
	case len(shape) == 1 && shape[0] == rows:
		shape = []int{rows, 1}
	case len(shape) != 2:
		return m.misfit(sc)
	}
	blocks := [][]int{c.Block, {128, 128}}
	if shape[0] > 0 && shape[1] > 0 && rows%shape[0] == 0 && cols%shape[1] == 0 {
		blocks = append(blocks, []int{rows / shape[0], cols / shape[1]})
	}
	for _, b := range blocks {
		if len(b) == 2 && min(b[0], b[1]) > 0 && shape[0] == (rows+b[0]-1)/b[0] && shape[1] == (cols+b[1]-1)/b[1] {
			sc.start, sc.span = func(x, r int) int { return x*per + r/b[0]*shape[1] }, b[1]
			return nil
		}
	}
	return m.misfit(sc)
}

func (m *scaledMatrix) misfit(sc *scale) error {
	return fmt.Errorf("%s: scales %q are %s of shape %v; want numbers for %q of shape %v: one, one per row, or one per block", sc.File, sc.Name, sc.DType, sc.Shape, m.codes.Name, m.codes.Shape)
}

// entry returns the entry of the decoded matrix, which is decoded by row.
func (m *scaledMatrix) entry(base string) entry {
	_, rows, cols := m.size()
	e := m.codes
	e.DType, e.stored, e.Shape = tensor.F16, "", slices.Clone(e.Shape)
	if m.exact && len(m.scales) > 0 {
		e.DType = tensor.BF16
	}
	e.Shape[len(e.Shape)-1] = cols
	if strings.HasSuffix(e.Name, ".weight_packed") {
		e.Name = base + ".weight"
	}
	e.Bytes = 2 * int64(e.Elements())
	e.values = func(r int, x []float32) {
		m.decode(x, r)
		for i := range m.scales {
			m.scales[i].apply(x, r/rows, r%rows)
		}
	}
	return e
}

// decode returns the codes of a row as numbers.
func (m *scaledMatrix) decode(x []float32, r int) {
	raw := m.codes.raw()
	if dt := m.codes.DType; dt.IsBlock() {
		size := dt.RowBytes(len(x))
		if err := tensor.Decode(x, dt, raw[r*size:][:size]); err != nil {
			panic("bug: " + err.Error())
		}
		return
	}
	if !m.wide {
		for c, b := range raw[r*len(x):][:len(x)] {
			x[c] = m.format.values[b]
		}
		return
	}
	for i, b := range raw[r*len(x)/2:][:len(x)/2] {
		x[2*i], x[2*i+1] = e2m1[b&15], e2m1[b>>4]
	}
}

// apply multiplies a row by its factors.
func (sc *scale) apply(x []float32, expert, r int) {
	at := sc.start(expert, r)
	for c := 0; c < len(x); c += sc.span {
		f := sc.factor(at + c/sc.span)
		if sc.divides {
			f = 1 / f
		}
		if sc.largest {
			f /= 127
		}
		for i := range x[c:min(c+sc.span, len(x))] {
			x[c+i] *= f
		}
	}
}

// factor decodes one factor.
func (sc *scale) factor(i int) float32 {
	if f := smallFormats[sc.stored]; f != nil {
		return f.values[sc.raw()[i]]
	}
	return sc.number(i)
}
