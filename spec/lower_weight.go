package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
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

// weight declares `@name` for a standard tensor and returns the weight's name in
// the IR, or "" if the model has no such tensor. If the standard name contains
// {i}, the weight is an array over the layers that have the tensor.
func (l *lowerer) weight(name, std string, c *cut) string {
	if !l.has(std) {
		return ""
	}
	d := l.declaration(name, std)
	if l.decls["@"+d.name] {
		return "@" + d.name
	}
	first := l.tensors[layerName(std, d.lo)]
	typ, mixed, block := first.DType, false, first.DType.IsBlock()
	for i := d.lo; i < d.hi; i++ {
		t := l.tensors[layerName(std, i)]
		if t.Pattern != first.Pattern {
			l.fail("tensors %q and %q map to %s, but one pattern must match all layers", first.File, t.File, std)
		}
		mixed, block = mixed || t.DType != typ, block || t.DType.IsBlock()
	}
	transform := tensor.Source(first.Pattern)
	shape := append([]int(nil), first.Shape...)
	if l.storesTransposed(std, shape) {
		if typ.IsBlock() {
			mixed = true
		}
		transform = &tensor.Transform{Op: "transpose", Args: []*tensor.Transform{transform}}
		shape[0], shape[1] = shape[1], shape[0]
	}
	if c != nil {
		transform = c.apply(transform)
		shape[0] = c.rows
		switch {
		case c.shape != nil:
			shape = c.shape
		case c.vector:
			shape = []int{c.rows}
		}
		mixed = mixed || c.wide
	}
	if mixed {
		typ = l.wide(block)
		transform = &tensor.Transform{Op: "quantize", Args: []*tensor.Transform{transform}, Type: typ}
	}
	l.declare(d, typ, shape, transform)
	return "@" + d.name
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

// A declaration is a weight to be declared: its name in the IR, the standard
// name of its tensors, and the layers that it is an array over.
type declaration struct {
	name, std string
	base      string // the name without the first layer of a later run
	lo, hi    int    // layers
	layered   bool   // an array over them; false for one tensor
	experts   int    // number of experts that it is an array over; 0: none
}

// declaration returns the consecutive layers around the current one that have
// the tensor. Weights of an encoder in front of a decoder have distinct names,
// and so have the weights of later runs of layers with the same tensor.
func (l *lowerer) declaration(name, std string) declaration {
	d := declaration{name: l.prefix + name, std: std, hi: 1}
	if strings.HasPrefix(std, "enc.") && l.Net.decodes() {
		d.name = "enc_" + name
	}
	if strings.HasPrefix(std, "dec.{i}."+secondPart) {
		d.name = "second_" + name
	}
	d.base = d.name
	if !strings.Contains(std, "{i}") {
		return d
	}
	if l.Net.WeightGroups > 0 { // one tensor for all layers of a group, named by the group's first layer
		own := l.weightGroup(l.Hyper.Layers, l.at)
		for l.weightGroup(l.Hyper.Layers, d.lo) != own {
			d.lo++
		}
		if d.hi = d.lo + 1; d.lo > 0 {
			d.name += fmt.Sprintf("_%d", d.lo)
		}
		return d
	}
	has := func(i int) bool { _, ok := l.tensors[layerName(std, i)]; return ok }
	first := 0
	for !has(first) {
		first++
	}
	if p := l.tensors[layerName(std, l.at)].Pattern; !strings.Contains(p, "{i") { // one tensor, named by the first layer that reads it
		for d.lo = first; !has(d.lo) || l.tensors[layerName(std, d.lo)].Pattern != p; {
			d.lo++
		}
		if d.hi = d.lo + 1; d.lo > first {
			d.name += fmt.Sprintf("_%d", d.lo)
		}
		return d
	}
	d.lo, d.hi = l.at, l.at+1
	alike := func(i int) bool {
		t, here := l.tensors[layerName(std, i)], l.tensors[layerName(std, l.at)]
		return has(i) && t.Pattern == here.Pattern && slices.Equal(t.Shape, here.Shape) && slices.Equal(l.typesAt(&d, i), l.typesAt(&d, l.at))
	}
	for d.lo > 0 && alike(d.lo-1) {
		d.lo--
	}
	for d.hi < l.Hyper.Layers && alike(d.hi) {
		d.hi++
	}
	if d.lo > first {
		d.name += fmt.Sprintf("_%d", d.lo)
	}
	d.layered = strings.Contains(l.tensors[layerName(std, d.lo)].Pattern, "{i")
	return d
}

func (l *lowerer) declare(d declaration, typ tensor.DType, shape []int, transform *tensor.Transform) {
	w := &ir.Value{Name: d.name, Kind: ir.Weight, Type: ir.Type{Elem: typ}, Transform: transform}
	if d.layered {
		w.Count = append(w.Count, ir.Range{Lo: d.lo, Hi: d.hi})
	}
	if d.experts > 0 {
		w.Count = append(w.Count, ir.Range{Hi: d.experts})
	}
	for _, n := range shape {
		w.Type.Shape = append(w.Type.Shape, ir.Size{N: n})
	}
	l.weights = append(l.weights, w)
	l.decls["@"+d.name] = true
	l.declared[d.name] = d
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

// groupCut returns the cut of rows lo to hi−1 of each group.
func groupCut(groups, group, lo, hi int) *cut {
	return &cut{rows: groups * (hi - lo), apply: func(r *tensor.Transform) *tensor.Transform {
		return &tensor.Transform{Op: "group_rows", Args: []*tensor.Transform{r}, Nums: []float64{float64(groups), float64(group), float64(lo), float64(hi)}}
	}}
}

// rowVector returns the cut that reshapes [1, n] or [heads, head_dim] to a vector of n.
func rowVector(n int) *cut {
	return &cut{rows: n, vector: true, apply: func(r *tensor.Transform) *tensor.Transform {
		return &tensor.Transform{Op: "reshape", Args: []*tensor.Transform{r}, Nums: []float64{float64(n)}}
	}}
}
