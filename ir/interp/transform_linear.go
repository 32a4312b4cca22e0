package interp

import (
	"math"

	"github.com/iflowc/iflowc/ir/tensor"
)

// linearRows returns a·wᵀ, plus the bias of the third operand if there is one.
func linearRows(in []*tensor.Tensor) *tensor.Tensor {
	a, w := in[0], in[1]
	n, m, k := a.Shape[0], w.Shape[0], a.Shape[1]
	out := tensor.New(tensor.F32, n, m)
	for i := range n {
		for j := range m {
			sum := 0.0
			if len(in) == 3 {
				sum = in[2].F[j]
			}
			for c := range k {
				sum += a.F[i*k+c] * w.F[j*k+c]
			}
			out.F[i*m+j] = float64(float32(sum))
		}
	}
	return out
}

// layerNormRows returns the layer norm of each row, with a weight and a bias.
func layerNormRows(in []*tensor.Tensor, eps float64) *tensor.Tensor {
	out, k := tensor.New(tensor.F32, in[0].Shape...), in[0].Shape[1]
	for at := 0; at < len(out.F); at += k {
		x, mean, square := in[0].F[at:at+k], 0.0, 0.0
		for _, v := range x {
			mean += v / float64(k)
		}
		for _, v := range x {
			square += (v - mean) * (v - mean) / float64(k)
		}
		by := 1 / math.Sqrt(square+eps)
		for i, v := range x {
			out.F[at+i] = float64(float32((v-mean)*by*in[1].F[i] + in[2].F[i]))
		}
	}
	return out
}
