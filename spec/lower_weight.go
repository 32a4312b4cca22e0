package spec

import (
	"github.com/iflowc/iflowc/ir/tensor"
)

// A cut selects the part of a stored tensor that a weight uses.
type cut struct {
	shape  []int // of the result; nil: as stored, with these rows
	rows   int   // rows of the result
	vector bool  // the result is a vector of rows elements
	wide   bool  // the result is computed, so its type differs from the stored type
	apply  func(*tensor.Transform) *tensor.Transform
}

// weight declares the weight of a standard tensor and returns the reference to it, or "" if
// the model has no such tensor. If the standard name contains {i}, it is that of the current
// layer.
func (l *lowerer) weight(name, std string, c *cut) string {
	if !l.has(std) {
		return ""
	}
	e := l.elementOf(name, std)
	e.transform = tensor.Source(l.tensors[layerName(std, l.at)].Pattern)
	if l.storesTransposed(std, e.shape) {
		e.wide = e.block
		e.transform = apply("transpose", e.transform)
		e.shape[0], e.shape[1] = e.shape[1], e.shape[0]
	}
	if c != nil {
		e.transform = c.apply(e.transform)
		e.shape[0] = c.rows
		switch {
		case c.shape != nil:
			e.shape = c.shape
		case c.vector:
			e.shape = []int{c.rows}
		}
		e.wide = e.wide || c.wide
	}
	return l.declare(e)
}

// StoresTransposed reports whether a stored matrix is inputs by outputs.
func (m *Model) StoresTransposed(std string) bool {
	return m.storesTransposed(std, m.tensors[std].Shape)
}

func (m *Model) storesTransposed(std string, shape []int) bool {
	return len(shape) == 2 && (m.Net.WeightLayout == "in_out" && transposes(std) || m.gateTransposed(std, shape))
}

// wide returns a type that holds values of different stored types. It is f32, or
// f16 with little loss for block types if quant is not set.
func (l *lowerer) wide(block bool) tensor.DType {
	if block && l.Spec.Quant == tensor.Invalid {
		return tensor.F16
	}
	return tensor.F32
}

// linear writes y = x·wᵀ, without the bias.
func (l *lowerer) linear(hint, weight, std, x string, c *cut) string {
	return l.t.op(hint, "matmul", []string{x, l.weight(weight, std+".weight", c)}, nil)
}

// bias adds a projection's bias, if the model has one.
func (l *lowerer) bias(hint, name, std, y string, c *cut) string {
	b := l.weight(name, std+".bias", c)
	if b == "" {
		return y
	}
	return l.t.op(hint, "add", []string{y, b}, nil)
}

// affine writes y = x·wᵀ + b, or y = x·wᵀ if the model has no bias.
func (l *lowerer) affine(hint, name, std, x string) string {
	return l.bias(hint, name+"_bias", std, l.linear(hint, name, std, x, nil), nil)
}

// rowsCut returns the cut of rows lo to hi−1.
func rowsCut(lo, hi int) *cut {
	return &cut{rows: hi - lo, apply: func(r *tensor.Transform) *tensor.Transform {
		return &tensor.Transform{Op: "rows", Args: []*tensor.Transform{r}, Nums: []float64{float64(lo), float64(hi)}}
	}}
}

// rowVector returns the cut that reshapes [1, n] or [heads, head_dim] to a vector of n.
func rowVector(n int) *cut {
	return &cut{rows: n, vector: true, apply: func(r *tensor.Transform) *tensor.Transform {
		return &tensor.Transform{Op: "reshape", Args: []*tensor.Transform{r}, Nums: []float64{float64(n)}}
	}}
}
