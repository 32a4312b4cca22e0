package expand

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/syntax"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A weightVar is a weight that a module declares. It becomes one of the graph where an op
// reads it.
type weightVar struct {
	decl    *syntax.Weight
	found   *Weight // nil: not stored
	missing string  // standard name of the first tensor that is not stored
	value   *ir.Value
}

// weight declares a weight: it is made of the first source that is stored.
func (f *frame) weight(d *syntax.Weight) {
	name := d.Name[1:]
	f.each = 0
	if len(d.Count) == 1 {
		if c := d.Count[0]; c.Hi == "" {
			name = fmt.Sprintf("%s.%d", name, f.countOf(d, c.N))
		} else {
			f.each = f.countOf(d, c.Hi)
		}
	}
	if len(d.Count) > 1 || d.Type.Elem != "" && d.Type.Elem != "f32" || len(d.From) == 0 {
		f.fail("weight %s: write weight %s : [sizes] from \"tensor\"", d.Name, d.Name)
	}
	w := &weightVar{decl: d}
	for _, from := range d.From {
		f.vector = len(d.Type.Sizes) == 1
		s := f.source(from)
		if len(s.missing) > 0 {
			w.missing = cmp.Or(w.missing, s.missing[0])
			continue
		}
		w.found = &Weight{Path: f.path, Name: name, Std: f.own(s.stds), Stds: s.stds, Transform: s.transform, Shape: s.shape, Count: f.each, Tensors: s.tensors, Computed: s.computed || d.Type.Elem != ""}
		f.shape(w, d)
		break
	}
	if w.found == nil && !d.Optional {
		f.at = d.Pos
		f.missing(w.missing)
	}
	f.set(d.Name, w)
}

// own returns the first of standard names that is one of this instance, or else the first.
func (f *frame) own(stds []string) string {
	for _, std := range stds {
		if strings.HasPrefix(std, f.path+".") {
			return std
		}
	}
	return stds[0]
}

// countOf returns the number that a weight has, or how many there are of it.
func (f *frame) countOf(d *syntax.Weight, text string) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	v := f.name(text)
	n, ok := v.(int)
	if !ok || n < 0 {
		f.fail("weight %s: %s is %s, want a number", d.Name, text, show(v))
	}
	return n
}

// shape checks that the shape of a weight is what the module says. A size that is None may be
// any.
func (f *frame) shape(w *weightVar, d *syntax.Weight) {
	fits := len(d.Type.Sizes) == len(w.found.Shape)
	want := make([]any, len(d.Type.Sizes))
	for i, e := range d.Type.Sizes {
		want[i] = f.eval(e)
		n, ok := want[i].(int)
		if f.at = e.Pos; want[i] != nil && (!ok || n < 1) {
			f.fail("weight %s: the size %s is %s, want a number from 1", d.Name, e, show(want[i]))
		}
		fits = fits && (want[i] == nil || n == w.found.Shape[i])
		w.found.Free = w.found.Free || want[i] == nil
	}
	if fits {
		return
	}
	f.at = d.Pos
	f.misshapen(w.found.Tensors[0], w.found.Std, w.found.Shape, want, d.Type.Sizes)
}

// misshapen ends the expansion because a tensor, or what is made of it, has a wrong shape.
func (f *frame) misshapen(t Tensor, std string, made []int, want []any, sizes []*syntax.Expr) {
	msg := fmt.Sprintf("tensor %q (%s): shape %v", t.File, std, t.Shape)
	if !slices.Equal(t.Shape, made) {
		msg += fmt.Sprintf(" makes %v", made)
	}
	panic(failure{f.error(msg+", want "+show(want)+f.because(sizes...), std, sizes...)})
}

// use returns the weight of the graph.
func (f *frame) use(w *weightVar) *ir.Value {
	if w.value == nil {
		v, err := f.host.Weight(w.found)
		if err != nil {
			f.fail("%v", err)
		}
		w.value = v
	}
	return w.value
}

// state declares a state: rows(k = [heads, dim], v = [heads, dim]), or fixed(s = [sizes]).
func (f *frame) state(d *syntax.State) {
	if d.Call == nil || len(d.Count) > 0 {
		f.fail("state %s: write state %s : rows(k = [heads, dim], v = [heads, dim]), or fixed(s = [sizes])", d.Name, d.Name)
	}
	e, s, bits := &d.Call.Expr, &ir.StateType{}, 0
	switch e.Text {
	case "rows":
	case "fixed":
		s.Fixed = true
	default:
		f.at = e.Pos
		f.fail("state %s is %s, want rows or fixed", d.Name, e.Text)
	}
	for _, a := range e.Named {
		v := f.eval(a.Val)
		f.at = a.Pos
		switch n, isInt := v.(int); {
		case a.Name == "window" && isInt && !s.Fixed:
			s.Window = n
		case a.Name == "source" && !s.Fixed:
			s.Source = truth(v)
		case a.Name == "bits" && isInt && !s.Fixed:
			bits = n
		default:
			s.Fields = append(s.Fields, ir.Field{Name: a.Name, Shape: f.sizes(a.Name, v)})
		}
	}
	if f.at = d.Pos; len(s.Fields) == 0 || len(e.Args) > 0 {
		f.fail("state %s: fields have a name and a list of sizes, such as k = [heads, dim]", d.Name)
	}
	for i := range s.Fields {
		s.Fields[i].Elem = f.fieldElem(s, s.Fields[i].Name, bits)
	}
	v, err := f.host.State(f.path, d.Name[1:], s)
	if err != nil {
		f.fail("%v", err)
	}
	f.set(d.Name, v)
}

func (f *frame) fieldElem(s *ir.StateType, name string, bits int) tensor.DType {
	if s.Fixed {
		return tensor.F32
	}
	return f.host.StateElem(name, bits)
}

// sizes returns the sizes of a field.
func (f *frame) sizes(name string, v any) []int {
	var out []int
	list, ok := v.([]any)
	for _, x := range list {
		n, isInt := x.(int)
		ok = ok && isInt && n > 0
		out = append(out, n)
	}
	if !ok || len(out) == 0 {
		f.fail("field %s is %s, want a list of sizes", name, show(v))
	}
	return out
}

// flatten adds a value to a list; of a list its elements, and those of lists in it.
func (f *frame) flatten(out []any, v any) []any {
	list, ok := v.([]any)
	if !ok {
		return append(out, v)
	}
	f.spend(len(list))
	for _, x := range list {
		out = f.flatten(out, x)
	}
	return out
}
