package tensor

import (
	"fmt"
	"slices"
)

// A Tensor is a host tensor of the interpreter. Values are float64 in row-major order;
// DType is the precision that they represent.
type Tensor struct {
	DType DType
	Shape []int
	F     []float64
}

// New returns a tensor of zeros. It panics for a negative dimension.
func New(dt DType, shape ...int) *Tensor {
	n := 1
	for _, d := range shape {
		if d < 0 {
			panic(fmt.Sprintf("bug: tensor of shape %v", shape))
		}
		n *= d
	}
	return &Tensor{DType: dt, Shape: slices.Clone(shape), F: make([]float64, n)}
}

// Len returns the number of elements.
func (t *Tensor) Len() int { return len(t.F) }

// At returns the element at the given index, one number per dimension.
func (t *Tensor) At(index ...int) float64 { return t.F[t.offset(index)] }

// Set sets the element at the given index.
func (t *Tensor) Set(v float64, index ...int) { t.F[t.offset(index)] = v }

// Clone returns a deep copy.
func (t *Tensor) Clone() *Tensor {
	return &Tensor{DType: t.DType, Shape: slices.Clone(t.Shape), F: slices.Clone(t.F)}
}

func (t *Tensor) offset(index []int) int {
	if len(index) != len(t.Shape) {
		panic(fmt.Sprintf("bug: index %v into shape %v", index, t.Shape))
	}
	o := 0
	for i, x := range index {
		if x < 0 || x >= t.Shape[i] {
			panic(fmt.Sprintf("bug: index %v into shape %v", index, t.Shape))
		}
		o = o*t.Shape[i] + x
	}
	return o
}
