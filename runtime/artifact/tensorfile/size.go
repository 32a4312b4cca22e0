package tensorfile

import (
	"errors"
	"fmt"
	"math"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// MaxDims is the maximum number of dimensions; convolutions have five.
const MaxDims = 8

// storedSize checks a shape read from a file and returns it with the tensor's size
// in bytes. Rows of block types must be whole blocks.
func storedSize(dt dtype.Type, dims []uint64) (shape []int, size int64, err error) {
	if len(dims) > MaxDims {
		return nil, 0, fmt.Errorf("%d dimensions; want at most %d", len(dims), MaxDims)
	}
	n := uint64(1)
	shape = make([]int, len(dims))
	for i, d := range dims {
		if d > math.MaxInt64 || d != 0 && n > math.MaxInt64/d {
			return nil, 0, fmt.Errorf("shape %d is larger than any file", dims)
		}
		n *= d
		shape[i] = int(d)
	}
	if b := uint64(dt.Block()); b > 1 && (len(dims) == 0 || dims[len(dims)-1]%b != 0) {
		return nil, 0, fmt.Errorf("shape %d: rows of %s must be whole blocks of %d", dims, dt, b)
	}
	blocks := n / uint64(dt.Block())
	if blocks > math.MaxInt64/uint64(dt.BlockBytes()) {
		return nil, 0, fmt.Errorf("shape %d is larger than any file", dims)
	}
	return shape, int64(blocks) * int64(dt.BlockBytes()), nil
}

// checkDisjoint returns an error for tensors that share bytes. It ignores empty tensors.
func checkDisjoint(tensors []Tensor) error {
	order := make([]*Tensor, 0, len(tensors))
	for i := range tensors {
		if tensors[i].Bytes > 0 {
			order = append(order, &tensors[i])
		}
	}
	sortByOffset(order)
	for i := 1; i < len(order); i++ {
		a, b := order[i-1], order[i]
		if a.Offset+a.Bytes > b.Offset {
			return fmt.Errorf("tensors %q and %q share bytes at offset %d", a.Name, b.Name, b.Offset)
		}
	}
	return nil
}

// ErrTruncated is wrapped by errors about ranges beyond the end of the file.
var ErrTruncated = errors.New("the file ends early; it is truncated, download it again")
