package spec

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// An element is a weight of one layer, or of the model.
type element struct {
	name, std string // name: in the IR, that all layers share; std: that of its tensors, with {i}
	stored    string // standard name of its first tensor
	base      string // the name without the number that it has among others in a loop
	layer     int    // that reads it first; -1: of the model
	layered   bool   // the name of its tensor has {i}
	experts   int    // number of experts that it is an array over; 0: none
	typ       tensor.DType
	wide      bool // computed, or of tensors of several types: its type differs from the stored one
	block     bool // one of its tensors has a block type
	shape     []int
	transform *tensor.Transform
	value     *ir.Value
}

// ref returns the name by which ops refer to the element.
func (e *element) ref() string {
	switch {
	case e.layer < 0:
		return "@" + e.name
	case e.layered:
		return fmt.Sprintf("@%s#%d", e.name, e.layer)
	}
	return fmt.Sprintf("@%s#%s", e.name, e.transform)
}

// declare declares an element, unless it is declared, and returns it as a value. Elements of
// no layer that are made alike are one. name is that of the weight in its module.
func (l *lowerer) declare(e *element, name string) (*ir.Value, error) {
	ref := e.ref()
	if same := l.byRef[ref]; same != nil {
		if same.transform.String() != e.transform.String() {
			return nil, fmt.Errorf("weight @%s is declared again, of other tensors; give it a number, as in weight @%s[i]", name, name)
		}
		return same.value, nil
	}
	if e.layer < 0 {
		made := e.transform.String()
		if same := l.made[made]; same != nil {
			return same.value, nil
		}
		l.made[made] = e
	}
	e.value = &ir.Value{Name: e.name, Kind: ir.Weight, Type: ir.Type{Elem: e.typ}}
	if e.experts > 0 {
		e.value.Count = []ir.Range{{Hi: e.experts}}
	}
	for _, n := range e.shape {
		e.value.Type.Shape = append(e.value.Type.Shape, ir.Size{N: n})
	}
	l.byRef[ref], l.elements = e, append(l.elements, e)
	return e.value, nil
}

// A declaration is a weight of the lowered module.
type declaration struct {
	name, std string // name: in the IR; std: of its tensors
	base      string // the name without the first layer of a later array
	lo, hi    int    // layers
	layered   bool   // an array over them; false for one tensor
}

// arrays returns arrays of the elements of consecutive layers that differ in nothing but
// their number, and adds where in them each element is. Later arrays of a name have that of
// their first layer behind it.
func (l *lowerer) arrays(out map[*ir.Value]ir.Arg) (weights []*ir.Value) {
	next := map[*element]*element{} // of the same array
	begun := map[*element]bool{}    // arrays begin with others
	last, firsts := map[string]*element{}, map[string]int{}
	for _, e := range l.elements {
		before := last[e.name]
		switch {
		case before == nil:
			firsts[e.name] = e.layer
		case l.alike(before, e):
			next[before], begun[e] = e, true
		}
		last[e.name] = e
	}
	for _, first := range l.elements {
		if begun[first] {
			continue
		}
		d := declaration{name: first.name, std: first.std, base: first.base, hi: 1, layered: first.layered}
		if first.layer >= 0 {
			d.lo = first.layer
			if d.lo > firsts[first.name] {
				d.name = fmt.Sprintf("%s_%d", d.base, d.lo)
			}
		}
		all := []*element{first}
		for e := next[first]; e != nil; e = next[e] {
			all = append(all, e)
		}
		d.hi = d.lo + len(all)
		w := l.array(&d, all)
		for _, e := range all {
			a := ir.A(w)
			if d.layered {
				a.Index = []ir.Index{ir.ConstIndex(e.layer)}
			}
			out[e.value] = a
		}
		weights, l.declared[d.name] = append(weights, w), d
	}
	return weights
}

// alike reports whether an element belongs to the array of that of the layer before.
func (l *lowerer) alike(before, e *element) bool {
	return e.layered && before.layered && e.layer == before.layer+1 && e.experts == before.experts && slices.Equal(e.shape, before.shape) &&
		e.transform.String() == before.transform.String() && slices.Equal(l.typesAt(before), l.typesAt(e))
}

// array returns the weight of an array of elements, or of one that is none.
func (l *lowerer) array(d *declaration, all []*element) *ir.Value {
	e := all[0]
	w := &ir.Value{Name: d.name, Kind: ir.Weight, Type: e.value.Type, Transform: e.transform}
	wide, block := false, false
	for _, x := range all {
		wide, block = wide || x.wide || x.typ != e.typ, block || x.block
	}
	if wide {
		w.Type.Elem = l.wide(block)
		w.Transform = &tensor.Transform{Op: "quantize", Args: []*tensor.Transform{e.transform}, Type: w.Type.Elem}
	}
	if d.layered {
		w.Count = append(w.Count, ir.Range{Lo: d.lo, Hi: d.hi})
	}
	if e.experts > 0 {
		w.Count = append(w.Count, ir.Range{Hi: e.experts})
	}
	return w
}

// A layerState is the state of one layer.
type layerState struct {
	name  string // in the IR, that all layers share
	value *ir.Value
}

// stateArrays returns one array of the states of a name with equal fields. Others get a
// number behind the name. Rows are kept for the window that all have, or else for ever.
func (l *lowerer) stateArrays(out map[*ir.Value]ir.Arg) (states []*ir.Value) {
	of := map[string][]*ir.Value{}
	for _, s := range l.declares {
		i := slices.IndexFunc(of[s.name], func(v *ir.Value) bool { return sameState(v.State, s.value.State) })
		if i < 0 {
			i = len(of[s.name])
			v := &ir.Value{Name: s.name, Kind: ir.State, Count: []ir.Range{{}}, State: s.value.State}
			if i > 0 {
				v.Name = fmt.Sprintf("%s_%d", s.name, i+1)
			}
			states, of[s.name] = append(states, v), append(of[s.name], v)
		}
		v := of[s.name][i]
		if v.State.Window != s.value.State.Window {
			v.State.Window = 0
		}
		a := ir.A(v)
		a.Index = []ir.Index{ir.ConstIndex(v.Count[0].Hi)}
		out[s.value] = a
		v.Count[0].Hi++
	}
	slices.SortStableFunc(states, func(a, b *ir.Value) int { return cmp.Compare(rank(a), rank(b)) })
	return states
}

// rank orders states: those of a fixed size come before rows.
func rank(v *ir.Value) int {
	if v.State.Fixed {
		return 0
	}
	return 1
}

func sameState(a, b *ir.StateType) bool {
	return a.Fixed == b.Fixed && a.Source == b.Source && slices.EqualFunc(a.Fields, b.Fields, func(x, y ir.Field) bool {
		return x.Name == y.Name && x.Elem == y.Elem && slices.Equal(x.Shape, y.Shape)
	})
}

// wide returns a type that holds values of different stored types. It is f32, or
// f16 with little loss for block types if quant is not set.
func (l *lowerer) wide(block bool) tensor.DType {
	if block && l.Spec.Quant == tensor.Invalid {
		return tensor.F16
	}
	return tensor.F32
}
