package interp

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Weights give the values of a module's weights. index has one number per
// count of the weight. The tensor must not be changed.
type Weights interface {
	Weight(v *ir.Value, index []int) (*tensor.Tensor, error)
}

// A Source gives a stored tensor by name. Its DType says what precision the
// values already have.
type Source func(name string) (*tensor.Tensor, error)

// Transforms are Weights by the module's transforms over stored tensors. A weight
// without a transform is the stored tensor of its own name, with its indices
// behind it: w.0.3 for @w[0, 3].
type Transforms struct {
	mod   *ir.Module
	src   Source
	cache map[string]*tensor.Tensor
}

// NewWeights evaluates the transforms of m over src, each element once.
func NewWeights(m *ir.Module, src Source) *Transforms {
	return &Transforms{mod: m, src: src, cache: map[string]*tensor.Tensor{}}
}

// Weight evaluates the transform for one index, checks the shape against the
// declared type and rounds to its element type.
func (w *Transforms) Weight(v *ir.Value, index []int) (*tensor.Tensor, error) {
	key := elementName(v, index)
	if t := w.cache[key]; t != nil {
		return t, nil
	}
	t, err := w.eval(TransformOf(v), index)
	if err != nil {
		return nil, fmt.Errorf("weight %s: %w", key, err)
	}
	var want []int
	for _, s := range v.Type.Shape {
		want = append(want, s.N)
	}
	if !slices.Equal(t.Shape, want) {
		return nil, fmt.Errorf("weight %s: its transform gives shape %v, its type is %s", key, t.Shape, v.Type)
	}
	if t, err = rounded(t, v.Type.Elem); err != nil {
		return nil, fmt.Errorf("weight %s: %w", key, err)
	}
	w.cache[key] = t
	return t, nil
}

// TransformOf returns the weight's transform; that of its own name when it has none.
func TransformOf(v *ir.Value) *tensor.Transform {
	if v.Transform != nil {
		return v.Transform
	}
	name := v.Name
	for i := range v.Count {
		name += ".{" + string(rune('i'+i)) + "}"
	}
	return tensor.Source(name)
}

// rounded returns the values the precision of an element type. Values that have
// it already stay, so that blocks that were only moved are not rounded twice.
func rounded(t *tensor.Tensor, dt tensor.DType) (*tensor.Tensor, error) {
	if t.DType == dt {
		return t, nil
	}
	out := t.Clone()
	out.DType = dt
	width := out.Shape[len(out.Shape)-1]
	for at := 0; at < len(out.F); at += width {
		if err := ops.Round(dt, out.F[at:at+width]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
