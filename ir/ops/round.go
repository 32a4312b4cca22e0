package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir/tensor"
)

// Round gives each number the value it has after being stored as dt and read
// back. Rows of block types must be whole blocks. F64 rounds nothing; plain
// types that cannot be encoded (integers) neither.
func Round(dt tensor.DType, x []float64) error {
	if dt == tensor.F64 || !dt.IsBlock() && !dt.IsFloat() {
		return nil
	}
	if len(x)%dt.Block() != 0 {
		return fmt.Errorf("%d numbers are not whole blocks of %s (%d)", len(x), dt, dt.Block())
	}
	f := make([]float32, len(x))
	for i, v := range x {
		f[i] = float32(v)
	}
	buf := make([]byte, dt.RowBytes(len(x)))
	if err := tensor.Encode(buf, dt, f); err != nil {
		return err
	}
	if err := tensor.Decode(f, dt, buf); err != nil {
		return err
	}
	for i, v := range f {
		x[i] = float64(v)
	}
	return nil
}
