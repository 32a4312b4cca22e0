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
	var missing []string
	for _, from := range d.From {
		f.vector = len(d.Type.Sizes) == 1
		s := f.source(from)
		if len(s.missing) > 0 {
			missing = append(missing, s.missing[0])
			continue
		}
		w.found = &Weight{Path: f.path, Name: name, Std: s.stds[0], Stds: s.stds, Transform: s.transform, Shape: s.shape, Count: f.each, Tensors: s.tensors, Computed: s.computed || d.Type.Elem != ""}
		f.shape(w, d)
		break
	}
	if w.found == nil && !d.Optional {
		f.at = d.Pos
		f.fail("%s", f.host.Missing(missing[0]))
	}
	f.set(d.Name, w)
}

// countOf returns the number that a weight has, or how many there are of it.
func (f *frame) countOf(d *syntax.Weight, text string) int {
	n, err := strconv.Atoi(text)
	if err == nil {
		return n
	}
	v, ok := f.name(text).(int)
	if !ok || v < 0 {
		f.fail("weight %s: %s is %s, want a number", d.Name, text, show(f.vars[text]))
	}
	return v
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
	}
	if fits {
		return
	}
	f.at = d.Pos
	t := w.found.Tensors[0]
	f.fail("tensor %q (%s): shape %v makes %v, want %s%s", t.File, w.found.Std, t.Shape, w.found.Shape, show(want), f.because(d.Type.Sizes...))
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
var reorders = []string{"rows", "group_rows", "part_rows", "concat", "reshape", "repeat_rows", "cols", "transpose", "l2norm_rows"}

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
		if s, ok := f.eval(e).(*sourceValue); ok {
			return s
		}
		f.at = e.Pos
		f.fail("%s is no tensor: write its name in quotes, or a transform such as rows(\"name\", lo, hi)", e)
	}
	if e.Text == "tensor" {
		return f.callExpr(e, nil)[0].(*sourceValue)
	}
	if e.Text == "reshape" { // of what is stored
		before := f.vector
		f.vector = false
		defer func() { f.vector = before }()
	}
	out := &sourceValue{transform: &tensor.Transform{Op: e.Text}}
	shapes := f.operands(e, out)
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
		t := out.tensors[0]
		f.fail("tensor %q of shape %v: %v%s", t.File, t.Shape, err, f.because(e))
	}
	return out
}

// operands adds the operands and numbers of a transform, and returns the shapes of the operands.
func (f *frame) operands(e *syntax.Expr, out *sourceValue) (shapes [][]int) {
	for _, a := range e.Args {
		if f.isSource(a, true) {
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
	return shapes
}

// isIdentity reports whether a transform changes nothing.
func (s *sourceValue) isIdentity() bool {
	r := s.transform
	return len(r.Args) == 1 && (r.Op == "concat" || (r.Op == "scale" || r.Op == "repeat_rows") && len(r.Nums) == 1 && r.Nums[0] == 1)
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

// isSource reports whether an argument of a transform is a tensor rather than a number. In the
// source of a weight texts are names of tensors.
func (f *frame) isSource(e *syntax.Expr, texts bool) bool {
	switch e.Kind {
	case syntax.StringLit:
		return texts
	case syntax.NameRef:
		_, ok := f.vars[e.Text].(*sourceValue)
		return ok
	case syntax.CallExpr:
		return e.Text == "tensor" || f.isTransform(e, texts)
	case syntax.CondExpr, syntax.CompExpr:
		return f.isSource(e.Args[0], texts)
	}
	return false
}

// isTransform reports whether a call is of a transform of tensors: some have the name of an op
// or a function.
func (f *frame) isTransform(e *syntax.Expr, texts bool) bool {
	return ir.IsTransform(e.Text) && slices.ContainsFunc(e.Args, func(a *syntax.Expr) bool { return f.isSource(a, texts) })
}

// tensor returns the source of a stored tensor.
func (f *frame) tensor(e *syntax.Expr) *sourceValue {
	std := f.std(e)
	if strings.Contains(std, "{j}") {
		return f.tensors(std)
	}
	t, ok := f.host.Tensor(std)
	if !ok {
		return &sourceValue{missing: []string{std}}
	}
	out := &sourceValue{transform: t.Transform, shape: slices.Clone(t.Shape), tensors: []Tensor{t}, stds: []string{std}, computed: t.Computed}
	n, most := 1, 1
	for _, d := range t.Shape {
		n, most = n*d, max(most, d)
	}
	if f.vector && len(t.Shape) > 1 && n == most {
		out.transform, out.shape = &tensor.Transform{Op: "reshape", Args: []*tensor.Transform{t.Transform}, Nums: []float64{float64(n)}}, []int{n}
	}
	return out
}

// tensors returns the source of the tensors of an array: one for each number {j}.
func (f *frame) tensors(std string) *sourceValue {
	out := &sourceValue{stds: []string{std}}
	if f.each == 0 {
		f.fail("%s stands for several tensors: write weight @name[0..n]", std)
	}
	for j := range f.each {
		f.spend(1)
		one := strings.Replace(std, "{j}", strconv.Itoa(j), 1)
		t, ok := f.host.Tensor(one)
		if !ok {
			return &sourceValue{missing: []string{one}}
		}
		if j == 0 {
			out.transform, out.shape, out.computed = t.Transform, slices.Clone(t.Shape), t.Computed
		}
		if first := out.tensors; j > 0 && t.Pattern != first[0].Pattern {
			f.fail("tensor %q: one name with a number in it must stand for all %d tensors, as %q does", t.File, f.each, first[0].Pattern)
		}
		if !slices.Equal(t.Shape, out.shape) {
			f.fail("tensor %q: shape %v, want %v, that of the first", t.File, t.Shape, out.shape)
		}
		out.tensors = append(out.tensors, t)
	}
	return out
}

// sized fails unless the stored tensor has the given sizes; None stands for any.
func (f *frame) sized(s *sourceValue, e *syntax.Expr) *sourceValue {
	want, ok := f.eval(e).([]any)
	if f.at = e.Pos; !ok {
		f.fail("the sizes of a tensor are a list")
	}
	if len(s.missing) > 0 || slices.EqualFunc(s.shape, want, func(n int, v any) bool { return v == nil || v == n }) {
		return s
	}
	f.fail("tensor %q: shape %v, want %s%s", s.tensors[0].File, s.shape, show(want), f.because(e))
	return nil
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
