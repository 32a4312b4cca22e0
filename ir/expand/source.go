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

// A sourceValue is what a source of a weight makes.
type sourceValue struct {
	transform *tensor.Transform
	shape     []int
	tensors   []Tensor
	stds      []string
	missing   []string // standard names that are not stored
	computed  bool
	size      int // number of tensors and transforms
}

// reorders are the transforms whose results have the elements of the stored blocks.
var reorders = []string{"rows", "group_rows", "part_rows", "concat", "reshape", "repeat_rows", "cols", "transpose", "l2norm_rows"}

// source evaluates a source of a weight: a tensor's name, or a transform of sources.
func (f *frame) source(e *syntax.Expr) *sourceValue {
	f.step(e.Pos)
	switch e.Kind {
	case syntax.StringLit:
		return f.tensor(e)
	case syntax.CondExpr:
		if truth(f.eval(e.Args[1])) {
			return f.source(e.Args[0])
		}
		return f.source(e.Args[2])
	}
	if e.Kind != syntax.CallExpr || e.Text == "tensor" || f.lib.sources[e.Text].text != "" && !f.isTransform(e, true) {
		if s, ok := f.eval(e).(*sourceValue); ok {
			return s
		}
		f.at = e.Pos
		f.fail("%s is no tensor: write its name in quotes, or a transform such as rows(\"name\", lo, hi)", e)
	}
	if e.Text == "reshape" { // of what is stored
		before := f.vector
		f.vector = false
		defer func() { f.vector = before }()
	}
	out := &sourceValue{transform: &tensor.Transform{Op: e.Text}, size: 1}
	shapes := f.operands(e, out)
	f.at = e.Pos
	if len(out.missing) > 0 {
		return out
	}
	if len(shapes) == 0 {
		f.fail("transform %s reads no tensor", e.Text)
	}
	if out.isIdentity() {
		return &sourceValue{out.transform.Args[0], shapes[0], out.tensors, out.stds, nil, out.computed, out.size}
	}
	blocks := slices.ContainsFunc(out.tensors, func(t Tensor) bool { return t.Type.IsBlock() })
	out.computed = out.computed || !slices.Contains(reorders, e.Text) || e.Text == "transpose" && blocks // whose blocks are others
	if err := ir.CheckTransform(out.transform); err != nil {
		f.fail("%v", err)
	}
	var err error
	if out.shape, err = ir.TransformShape(out.transform, shapes); err != nil {
		t := out.tensors[0]
		msg := fmt.Sprintf("tensor %q (%s): shape %v: %v%s", t.File, out.stds[0], t.Shape, err, f.because(e))
		panic(failure{f.error(msg, out.stds[0], e)})
	}
	return out
}

// operands adds the operands and numbers of a transform, and returns the shapes of the operands.
func (f *frame) operands(e *syntax.Expr, out *sourceValue) (shapes [][]int) {
	for _, a := range e.Args {
		if f.isSource(a, true) {
			for _, in := range f.sources(a) {
				out.transform.Args, shapes = append(out.transform.Args, in.transform), append(shapes, in.shape)
				out.size += in.size
				f.spend(in.size)
				out.tensors, out.stds, out.missing = append(out.tensors, in.tensors...), append(out.stds, in.stds...), append(out.missing, in.missing...)
				out.computed = out.computed || in.computed
			}
			continue
		}
		v := f.eval(a)
		for _, n := range f.flatten(nil, v) {
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
	if e.Kind == syntax.CallExpr && e.Text == "each" {
		return f.eachSource(e)
	}
	if e.Kind != syntax.CompExpr {
		return []*sourceValue{f.source(e)}
	}
	list, ok := f.eval(e.Args[1]).([]any)
	if f.at = e.Pos; !ok {
		f.fail("for needs a list, such as range(n)")
	}
	for _, x := range list {
		f.vars.set(e.Text, x)
		out = append(out, f.source(e.Args[0]))
	}
	f.vars.delete(e.Text)
	return out
}

// eachSource returns the sources each("name.{j}", n): one for each number below n.
func (f *frame) eachSource(e *syntax.Expr) (out []*sourceValue) {
	n, ok := 0, len(e.Args) == 2 && e.Args[0].Kind == syntax.StringLit
	if ok {
		n, ok = f.eval(e.Args[1]).(int)
	}
	if f.at = e.Pos; !ok {
		f.fail("each needs the name of tensors in quotes, with {j} in it, and how many there are")
	}
	for j := range n {
		f.spend(1)
		std := strings.Replace(f.std(e.Args[0]), "{j}", strconv.Itoa(j), 1)
		t, ok := f.host.Tensor(std)
		if !ok {
			return []*sourceValue{{missing: []string{std}, size: 1}}
		}
		f.host.Read(std)
		r := filledIn(tensor.Source(t.Pattern), strconv.Itoa(j))
		out = append(out, &sourceValue{transform: r, shape: t.Shape, tensors: []Tensor{t}, size: 1, stds: []string{strings.Replace(f.std(e.Args[0]), "{j}.", "", 1)}})
	}
	return out
}

// isSource reports whether an argument of a transform is a tensor rather than a number. In the
// source of a weight texts are names of tensors.
func (f *frame) isSource(e *syntax.Expr, texts bool) bool {
	switch e.Kind {
	case syntax.StringLit:
		return texts
	case syntax.NameRef:
		v, _ := f.vars.get(e.Text)
		_, ok := v.(*sourceValue)
		return ok
	case syntax.CallExpr:
		return e.Text == "tensor" || e.Text == "each" || f.isTransform(e, texts)
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
		return &sourceValue{missing: []string{std}, size: 1}
	}
	read := numbered(t.Transform, std)
	out := &sourceValue{transform: read, shape: slices.Clone(t.Shape), tensors: []Tensor{t}, stds: []string{std}, computed: t.Computed, size: 1}
	n, most := 1, 1
	for _, d := range t.Shape {
		n, most = n*d, max(most, d)
	}
	if f.vector && len(t.Shape) > 1 && n == most {
		out.transform, out.shape = &tensor.Transform{Op: "reshape", Args: []*tensor.Transform{read}, Nums: []float64{float64(n)}}, []int{n}
	}
	return out
}

// numbered returns a transform that reads one of the tensors that differ in a number {j}: that
// with the last number of a standard name.
func numbered(r *tensor.Transform, std string) *tensor.Transform {
	if !slices.ContainsFunc(r.Sources(), func(name string) bool { return strings.Contains(name, "{j}") }) {
		return r
	}
	parts := strings.Split(std, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		if _, err := strconv.Atoi(parts[i]); err == nil {
			return filledIn(r, parts[i])
		}
	}
	return r
}

// filledIn returns a transform with {j} replaced by a number.
func filledIn(r *tensor.Transform, number string) *tensor.Transform {
	out := *r
	out.Name, out.Args = strings.ReplaceAll(r.Name, "{j}", number), nil
	for _, a := range r.Args {
		out.Args = append(out.Args, filledIn(a, number))
	}
	return &out
}

// tensors returns the source of the tensors of an array: one for each number {j}.
func (f *frame) tensors(std string) *sourceValue {
	out := &sourceValue{stds: []string{std}, size: f.each}
	if f.each == 0 {
		f.fail("%s stands for several tensors: write weight @name[0..n]", std)
	}
	for j := range f.each {
		f.spend(1)
		one := strings.Replace(std, "{j}", strconv.Itoa(j), 1)
		t, ok := f.host.Tensor(one)
		if !ok {
			return &sourceValue{missing: []string{one}, size: 1}
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
	f.misshapen(s.tensors[0], s.stds[0], s.tensors[0].Shape, want, []*syntax.Expr{e})
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
