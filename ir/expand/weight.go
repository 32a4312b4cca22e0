package expand

import (
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
	decl  *syntax.Weight
	found *Weight // nil: not stored
	value *ir.Value
}

// weight declares a weight: it is made of the first source that is stored.
func (f *frame) weight(d *syntax.Weight) {
	name := d.Name[1:]
	if len(d.Count) == 1 && d.Count[0].Hi == "" {
		n, ok := f.name(d.Count[0].N).(int)
		if !ok {
			f.fail("weight %s: %s is no number", d.Name, d.Count[0].N)
		}
		name = fmt.Sprintf("%s.%d", name, n)
	}
	if len(d.Count) > 1 || d.Type.Elem != "" && d.Type.Elem != "f32" || len(d.From) == 0 {
		f.fail("weight %s: write weight %s : [sizes] from \"tensor\"", d.Name, d.Name)
	}
	w := &weightVar{decl: d}
	var missing []string
	for _, from := range d.From {
		f.vector = len(d.Type.Sizes) == 1 && !reshapes(from)
		s := f.source(from)
		if len(s.missing) > 0 {
			missing = append(missing, s.missing[0])
			continue
		}
		w.found = &Weight{Path: f.path, Name: name, Std: s.stds[0], Stds: s.stds, Transform: s.transform, Shape: s.shape, Tensors: s.tensors, Computed: s.computed || d.Type.Elem != ""}
		f.shape(w, d)
		break
	}
	if w.found == nil && !d.Optional {
		f.at = d.Pos
		f.fail("%s", f.host.Missing(missing[0]))
	}
	f.set(d.Name, w)
}

// shape checks that the shape of a weight is what the module says.
func (f *frame) shape(w *weightVar, d *syntax.Weight) {
	var want []int
	for i, e := range d.Type.Sizes {
		v := f.eval(e)
		if v == nil && len(d.Type.Sizes) == len(w.found.Shape) {
			v = w.found.Shape[i]
		}
		n, ok := v.(int)
		if f.at = e.Pos; !ok || n < 1 {
			f.fail("weight %s: the size %s is %s, want a number from 1", d.Name, e, show(v))
		}
		want = append(want, n)
	}
	if slices.Equal(w.found.Shape, want) {
		return
	}
	f.at = d.Pos
	t := w.found.Tensors[0]
	f.fail("tensor %q (%s): shape %v makes %v, want %v%s", t.File, w.found.Std, t.Shape, w.found.Shape, want, f.because(d.Type.Sizes...))
}

// A sourceValue is what a source of a weight makes.
type sourceValue struct {
	transform *tensor.Transform
	shape     []int
	tensors   []Tensor
	stds      []string
	missing   []string // standard names that are not stored
	computed  bool
}

// reorders are the transforms whose results have the elements of the stored blocks.
var reorders = []string{"rows", "group_rows", "concat", "reshape", "repeat_rows", "cols", "transpose"}

// source evaluates a source of a weight: a tensor's name, or a transform of sources.
func (f *frame) source(e *syntax.Expr) *sourceValue {
	f.step(e.Pos)
	switch e.Kind {
	case syntax.StringLit:
		return f.tensor(e)
	case syntax.CallExpr:
	case syntax.CondExpr:
		if truth(f.eval(e.Args[1])) {
			return f.source(e.Args[0])
		}
		return f.source(e.Args[2])
	default:
		f.fail("%s is no tensor: write its name in quotes, or a transform such as rows(\"name\", lo, hi)", e)
	}
	out := &sourceValue{transform: &tensor.Transform{Op: e.Text}}
	var shapes [][]int
	for _, a := range e.Args {
		if isSource(a) {
			for _, in := range f.sources(a) {
				out.transform.Args, shapes = append(out.transform.Args, in.transform), append(shapes, in.shape)
				out.tensors, out.stds, out.missing = append(out.tensors, in.tensors...), append(out.stds, in.stds...), append(out.missing, in.missing...)
				out.computed = out.computed || in.computed
			}
			continue
		}
		v := f.eval(a)
		for _, n := range flatten(v) {
			x, ok := float(n)
			if f.at = a.Pos; !ok {
				f.fail("transform %s: %s is %s, want a number", e.Text, a, typeName(n))
			}
			out.transform.Nums = append(out.transform.Nums, x)
		}
	}
	f.at = e.Pos
	if len(out.missing) > 0 {
		return out
	}
	if len(shapes) == 0 {
		f.fail("transform %s reads no tensor", e.Text)
	}
	if out.isIdentity() {
		return &sourceValue{out.transform.Args[0], shapes[0], out.tensors, out.stds, nil, out.computed}
	}
	out.computed = out.computed || !slices.Contains(reorders, e.Text)
	if err := ir.CheckTransform(out.transform); err != nil {
		f.fail("%v", err)
	}
	var err error
	if out.shape, err = ir.TransformShape(out.transform, shapes); err != nil {
		f.fail("%v%s", err, f.because(e))
	}
	return out
}

// isIdentity reports whether a transform changes nothing.
func (s *sourceValue) isIdentity() bool {
	r := s.transform
	return len(r.Args) == 1 && (r.Op == "concat" || (r.Op == "scale" || r.Op == "repeat_rows") && len(r.Nums) == 1 && r.Nums[0] == 1)
}

// reshapes reports whether a source states how stored elements are arranged. Without that a
// vector may be stored as a matrix.
func reshapes(e *syntax.Expr) bool {
	return e.Kind == syntax.CallExpr && e.Text == "reshape" || slices.ContainsFunc(e.Args, reshapes)
}

// sources evaluates an argument of a transform that is a source or a list of them.
func (f *frame) sources(e *syntax.Expr) (out []*sourceValue) {
	if e.Kind != syntax.CompExpr {
		return []*sourceValue{f.source(e)}
	}
	list, ok := f.eval(e.Args[1]).([]any)
	if f.at = e.Pos; !ok {
		f.fail("for needs a list, such as range(n)")
	}
	for _, x := range list {
		f.vars[e.Text] = x
		out = append(out, f.source(e.Args[0]))
	}
	delete(f.vars, e.Text)
	return out
}

// isSource reports whether an argument of a transform is a tensor rather than a number.
func isSource(e *syntax.Expr) bool {
	switch e.Kind {
	case syntax.StringLit:
		return true
	case syntax.CallExpr:
		return ir.IsTransform(e.Text) && slices.ContainsFunc(e.Args, isSource)
	case syntax.CondExpr, syntax.CompExpr:
		return isSource(e.Args[0])
	}
	return false
}

// tensor returns the source of a stored tensor.
func (f *frame) tensor(e *syntax.Expr) *sourceValue {
	std := f.std(e)
	t, ok := f.host.Tensor(std)
	if !ok {
		return &sourceValue{missing: []string{std}}
	}
	out := &sourceValue{transform: t.Transform, shape: slices.Clone(t.Shape), tensors: []Tensor{t}, stds: []string{std}, computed: t.Computed}
	if f.vector && len(t.Shape) > 1 {
		n := 1
		for _, d := range t.Shape {
			n *= d
		}
		out.transform, out.shape = &tensor.Transform{Op: "reshape", Args: []*tensor.Transform{t.Transform}, Nums: []float64{float64(n)}}, []int{n}
	}
	return out
}

// std returns the standard name of a tensor of this instance. A name with a slash in front is
// one of the model.
func (f *frame) std(e *syntax.Expr) string {
	name, err := strconv.Unquote(e.Text)
	if f.at = e.Pos; err != nil || name == "" {
		f.fail("%s is no name of a tensor", e.Text)
	}
	return f.tensorName(name)
}

func (f *frame) tensorName(name string) string {
	if whole, ok := strings.CutPrefix(name, "/"); ok {
		return whole
	}
	return join(f.path, name)
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
	e, s := &d.Call.Expr, &ir.StateType{}
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
		default:
			s.Fields = append(s.Fields, ir.Field{Name: a.Name, Elem: f.fieldElem(s, a.Name), Shape: f.sizes(a.Name, v)})
		}
	}
	if f.at = d.Pos; len(s.Fields) == 0 || len(e.Args) > 0 {
		f.fail("state %s: fields have a name and a list of sizes, such as k = [heads, dim]", d.Name)
	}
	v, err := f.host.State(f.path, d.Name[1:], s)
	if err != nil {
		f.fail("%v", err)
	}
	f.set(d.Name, v)
}

func (f *frame) fieldElem(s *ir.StateType, name string) tensor.DType {
	if s.Fixed {
		return tensor.F32
	}
	return f.host.StateElem(name)
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

// flatten returns the elements of a list, and those of lists in it.
func flatten(v any) []any {
	list, ok := v.([]any)
	if !ok {
		return []any{v}
	}
	var out []any
	for _, x := range list {
		out = append(out, flatten(x)...)
	}
	return out
}
