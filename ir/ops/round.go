package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir/tensor"
)

// Round rounds each number of a row to dt by storing it and reading it back. If the row
// is not a whole number of blocks, it is padded with its last value, as the loader does.
// F64 and integer types do not round.
func Round(dt tensor.DType, x []float64) error { return round(dt, x, tensor.Encode) }

// RoundState is Round as kernels store the KV cache: block types use the plain rule,
// without the search for weights. Rows of q5r_b32t2 are rotated before they are rounded,
// and back.
func RoundState(dt tensor.DType, x []float64) error {
	if dt != tensor.Q5RB32T2 {
		return round(dt, x, tensor.EncodePlain)
	}
	if len(x)%dt.Block() != 0 {
		return fmt.Errorf("a row of %d numbers is not whole blocks of %s", len(x), dt)
	}
	rotate(x)
	if err := round(dt, x, tensor.EncodePlain); err != nil {
		return err
	}
	rotate(x)
	return nil
}

// rotate is tensor.Rotate of a row that is computed with in float64.
func rotate(x []float64) {
	f := make([]float32, len(x))
	for i := range x {
		f[i] = float32(x[i])
	}
	tensor.Rotate(f)
	for i := range x {
		x[i] = float64(f[i])
	}
}

func round(dt tensor.DType, x []float64, encode func([]byte, tensor.DType, []float32) error) error {
	if len(x) == 0 || dt == tensor.F64 || !dt.IsBlock() && !dt.IsFloat() {
		return nil
	}
	blocks := (len(x) + dt.Block() - 1) / dt.Block()
	f := make([]float32, blocks*dt.Block())
	for i := range f {
		f[i] = float32(x[min(i, len(x)-1)])
	}
	buf := make([]byte, blocks*dt.BlockBytes())
	if err := encode(buf, dt, f); err != nil {
		return err
	}
	if err := tensor.Decode(f, dt, buf); err != nil {
		return err
	}
	for i := range x {
		x[i] = float64(f[i])
	}
	return nil
}
