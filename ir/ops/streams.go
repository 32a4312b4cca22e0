package ops

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// StreamWeights computes the weights by which hyper-connections mix the streams of the
// residual.
var StreamWeights = &ir.OpDef{
	Name: "stream_weights",
	Doc: "The weights of manifold-constrained hyper-connections for N streams (Xie et al. 2026), from the logits of a projection of the streams. With N columns: " +
		"pre = σ(x·scale[0] + base) + eps. With N·(N + 2) columns, also post = 2·σ(x·scale[1] + base) and the matrix comb[N, N] = softmax(x·scale[2] + base) + eps, by rows. " +
		"Sinkhorn–Knopp makes comb nearly doubly stochastic: it divides the columns by their sums + eps, and then iterations − 1 times the rows and the columns.",
	Params: []ir.ParamDef{
		param("x", "f32[T, N] or f32[T, N·(N + 2)]: pre, post, comb", value),
		param("scale", "[1] or [3]", weight),
		param("base", "[columns of x]", weight),
	},
	Attrs: []ir.AttrDef{
		{Name: "streams", Kind: ir.IntAttr, Required: true, Doc: "N, at most 16"},
		{Name: "iterations", Kind: ir.IntAttr, Default: 20, Doc: "iterations of Sinkhorn–Knopp, at least 1"},
		{Name: "eps", Kind: ir.FloatAttr, Default: 1e-6, Doc: "floor of the weights and of the sums"},
	},
	Traits: ir.RowWise,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, err := matrix(o.Args[0])
		if err != nil {
			return nil, err
		}
		n, scales := o.Int("streams"), 1
		if n < 1 || n > 16 || o.Int("iterations") < 1 {
			return nil, fmt.Errorf("streams=%d, iterations=%d, expected 1 to 16 and at least 1", n, o.Int("iterations"))
		}
		if x.Cols() != n {
			scales = 3
		}
		if x.Cols() != n && x.Cols() != n*(n+2) {
			return nil, fmt.Errorf("%s has %d columns, expected %d or %d", o.Args[0], x.Cols(), n, n*(n+2))
		}
		if err := vector(o.Args[1], scales); err != nil {
			return nil, err
		}
		return one(x, vector(o.Args[2], x.Cols()))
	},
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		out := in[0].Clone()
		for t := range out.Shape[0] {
			streamWeights(row(out, t), in[1].F, in[2].F, o.Int("streams"), o.Int("iterations"), o.Float("eps"))
		}
		return []*tensor.Tensor{out}, nil
	},
}

func streamWeights(x, scale, base []float64, n, iterations int, eps float64) {
	for i := range x {
		x[i] = x[i]*scale[min(i/n, len(scale)-1)] + base[i]
		switch {
		case i < n:
			x[i] = sigmoid(x[i]) + eps
		case i < 2*n:
			x[i] = 2 * sigmoid(x[i])
		}
	}
	if len(x) == n {
		return
	}
	comb := x[2*n:]
	for r := range n {
		SoftmaxRow(comb[r*n : (r+1)*n])
	}
	for i := range comb {
		comb[i] += eps
	}
	normalize := func(at func(i, j int) int) {
		for i := range n {
			sum := eps
			for j := range n {
				sum += comb[at(i, j)]
			}
			for j := range n {
				comb[at(i, j)] /= sum
			}
		}
	}
	for i := range iterations {
		if i > 0 {
			normalize(func(i, j int) int { return i*n + j })
		}
		normalize(func(i, j int) int { return j*n + i })
	}
}

// MixStreams mixes the streams of the residual.
var MixStreams = &ir.OpDef{
	Name: "mix_streams",
	Doc: "y[k·D + d] = Σ w[j·M + k] · x[j·D + d] over the streams j, in order: M streams of D columns as sums of N. " +
		"It collapses streams (M = 1), expands one (N = 1), and mixes them by a matrix.",
	Params: []ir.ParamDef{
		param("x", "f32[T, N·D]", value),
		param("w", "f32[T, N·M]", value),
	},
	Attrs:  []ir.AttrDef{{Name: "streams", Kind: ir.IntAttr, Required: true, Doc: "N"}},
	Traits: ir.RowWise,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		x, err := matrix(o.Args[0])
		if err != nil {
			return nil, err
		}
		w, err := matrix(o.Args[1])
		if err != nil {
			return nil, err
		}
		n := o.Int("streams")
		if n < 1 || x.Cols()%n != 0 || w.Cols()%n != 0 {
			return nil, fmt.Errorf("%d and %d columns, expected multiples of streams=%d", x.Cols(), w.Cols(), n)
		}
		return one(f32(x.Rows(), ir.N(x.Cols()/n*(w.Cols()/n))), sameRows(o.Args[0], o.Args[1]))
	},
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		n := o.Int("streams")
		d, m := in[0].Shape[1]/n, in[1].Shape[1]/n
		out := tensor.New(tensor.F32, in[0].Shape[0], m*d)
		for t := range out.Shape[0] {
			x, w, y := row(in[0], t), row(in[1], t), row(out, t)
			for i := range y {
				for j := range n {
					y[i] += w[j*m+i/d] * x[j*d+i%d]
				}
			}
		}
		return []*tensor.Tensor{out}, nil
	},
}

// MergeAttention joins two results of attention over different rows.
var MergeAttention = &ir.OpDef{
	Name: "merge_attention",
	Doc: "Attention over the rows of two states, from two results of attention with the flag lse: the outputs of each head weighted by exp(lse). " +
		"sinks adds exp(sink[head]) to the denominator. A head that sees no row of either state is 0.",
	Params: []ir.ParamDef{
		param("a", "f32[T, heads·(v_dim + 1)]", value),
		param("b", "f32[T, heads·(v_dim + 1)]", value),
		optional(param("sinks", "[heads]", weight)),
	},
	Attrs:  []ir.AttrDef{{Name: "heads", Kind: ir.IntAttr, Required: true, Doc: "query heads"}},
	Traits: ir.RowWise,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		a, err := matrix(o.Args[0])
		if err != nil {
			return nil, err
		}
		heads := o.Int("heads")
		width, err := headWidth(o.Args[0], heads)
		if err != nil {
			return nil, err
		}
		if len(o.Args) > 2 {
			if err := vector(o.Args[2], heads); err != nil {
				return nil, err
			}
		}
		if width < 2 {
			return nil, fmt.Errorf("%d columns per head, expected a value and a sum", width)
		}
		return one(f32(a.Rows(), ir.N(heads*(width-1))), rowsLike(o.Args[0], o.Args[1], a.Cols()))
	},
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		heads := o.Int("heads")
		width := in[0].Shape[1]/heads - 1
		out := tensor.New(tensor.F32, in[0].Shape[0], heads*width)
		for t := range out.Shape[0] {
			a, b, y := row(in[0], t), row(in[1], t), row(out, t)
			for h := range heads {
				logits := []float64{a[heads*width+h], b[heads*width+h]}
				if len(in) > 2 {
					logits = append(logits, in[2].F[h])
				}
				if math.IsInf(max(logits[0], logits[1]), -1) {
					continue
				}
				SoftmaxRow(logits)
				for c := h * width; c < (h+1)*width; c++ {
					y[c] = logits[0]*a[c] + logits[1]*b[c]
				}
			}
		}
		return []*tensor.Tensor{out}, nil
	},
}
