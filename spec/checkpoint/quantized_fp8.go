package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// fp8 maps safetensors' names of 8-bit float types to their decoders (Micikevicius
// et al. 2022, table 1).
var fp8 = map[string]func(b uint8) float32{"F8_E4M3": e4m3, "F8_E5M2": e5m2}

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

// adoptFP8 applies the stored scales to matrices of 8-bit floats. The scales are
// NAME.weight_scale, one per tensor or one per row, or NAME.weight_scale_inv, one
// per block of at most 128 by 128 (DeepSeek-V3). The results are rounded to f16: at most
// 0.05 % of a value, where rounding to e4m3 costs up to 6 %.
func (s *Set) adoptFP8() error {
	for i := range s.entries {
		e := s.entries[i]
		read := fp8[e.stored]
		if read == nil || e.taken || len(e.Shape) == 0 {
			continue
		}
		var scales entry
		at, have := func(int, int) int { return 0 }, false
		name := strings.TrimSuffix(e.Name, ".weight")
		for _, end := range []string{".weight_scale", ".weight_scale_inv"} {
			sc, ok := s.take(name + end)
			if !ok {
				continue
			}
			var err error
			if at, err = fp8Scale(&e, &sc); err != nil {
				return err
			}
			scales, have = sc, true
		}
		s.take(name + ".input_scale") // scale of activations; iflowc quantizes activations itself
		s.entries[i].DType, s.entries[i].Bytes = tensor.F16, 2*e.Bytes
		s.entries[i].collect = func() []byte {
			x := []float32{1}
			if have {
				x = scales.floats()
			}
			return e.scaled(read, x, at)
		}
		s.note("%s: matrices of 8-bit floats are converted to f16; use --quant for a smaller type", e.File)
	}
	return nil
}

// fp8Scale returns the index function of the scales of a matrix.
func fp8Scale(e, sc *entry) (func(r, c int) int, error) {
	bad := fmt.Errorf("%s: scales %q are %s of shape %v; want floats for %q of shape %v: one, one per row, or one per block of 128 by 128", sc.File, sc.Name, sc.DType, sc.Shape, e.Name, e.Shape)
	if !sc.DType.IsFloat() || len(e.Shape) != 2 {
		return nil, bad
	}
	rows, cols := e.Shape[0], e.Shape[1]
	switch n := sc.Elements(); {
	case n == 1:
		return func(int, int) int { return 0 }, nil
	case n == rows && sc.Shape[0] == rows:
		return func(r, _ int) int { return r }, nil
	case len(sc.Shape) == 2 && sc.Shape[0] == (rows+127)/128 && sc.Shape[1] == (cols+127)/128:
		wide := sc.Shape[1]
		return func(r, c int) int { return r/128*wide + c/128 }, nil
	}
	return nil, bad
}

// scaled returns the scaled matrix as f16.
func (e *entry) scaled(read func(uint8) float32, scales []float32, at func(r, c int) int) []byte {
	raw := e.raw()
	out := make([]byte, 2*len(raw))
	var values [256]float32
	for b := range values {
		values[b] = read(uint8(b))
	}
	cols := e.Shape[len(e.Shape)-1]
	for i, b := range raw {
		binary.LittleEndian.PutUint16(out[2*i:], finiteF16(values[b]*scales[at(i/cols, i%cols)]))
	}
	return out
}
