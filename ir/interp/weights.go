package interp

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Weights returns the values of a module's weights. The index has one number per count of
// the weight. Callers must not modify the tensor.
type Weights interface {
	Weight(v *ir.Value, index []int) (*tensor.Tensor, error)
}

// A Source returns a stored tensor by name. Its DType is the precision that the values
// already have.
type Source func(name string) (*tensor.Tensor, error)

// Transforms implements Weights by evaluating the module's transforms over stored tensors.
// A weight without a transform is the stored tensor of the same name, with the indices as
// suffix: w.0.3 for @w[0, 3].
type Transforms struct {
	mod   *ir.Module
	src   Source
	cache map[string]*tensor.Tensor
}

// NewWeights returns Weights that evaluate the transforms of m over src, each element once.
func NewWeights(m *ir.Module, src Source) *Transforms {
	return &Transforms{mod: m, src: src, cache: map[string]*tensor.Tensor{}}
}

// Weight evaluates the transform for one index, checks the shape against the declared type
// and rounds to its element type.
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
		return nil, fmt.Errorf("weight %s: its transform has shape %v, but its type is %s", key, t.Shape, v.Type)
	}
	if t, err = rounded(t, v.Type.Elem); err != nil {
		return nil, fmt.Errorf("weight %s: %w", key, err)
	}
	w.cache[key] = t
	return t, nil
}

// TransformOf returns the weight's transform, or the default transform with its own name.
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

// rounded rounds values to the precision of an element type. Values that already have it
// are unchanged, so that blocks that were only moved are not rounded twice.
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
