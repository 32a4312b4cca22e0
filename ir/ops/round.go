package ops

import (
	"github.com/iflowc/iflowc/ir/tensor"
)

// Round returns each number of a row the value it has after being stored as dt
// and read back. A row that is no whole number of blocks is filled up with its
// last value, as the loader does. F64 rounds nothing; integer types neither.
func Round(dt tensor.DType, x []float64) error { return round(dt, x, tensor.Encode) }

// RoundState is Round as kernels store keys and values: block types by the
// plain rule, without the search that weights are worth.
func RoundState(dt tensor.DType, x []float64) error { return round(dt, x, tensor.EncodePlain) }

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
