package expand

import (
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/syntax"
	"github.com/iflowc/iflowc/ir/tensor"
)

// graph writes a graph, whose statements see what the module has bound. Its yield names the
// results; those that are None are left out.
func (f *frame) graph(g *syntax.Graph) {
	f.step(g.Pos)
	if f.writing != nil {
		f.fail("a graph in a graph; write it in a module that is called outside of both")
	}
	f.writing, f.dims = f, nil
	for _, d := range g.Dims {
		f.dims = append(f.dims, &ir.Dim{Name: d.Name, Role: d.Role})
	}
	f.must(f.host.Graph(g.Name, f.dims))
	n := len(g.Stmts)
	if n == 0 || g.Stmts[n-1].Yield == nil {
		f.fail("graph %s has no yield at its end, which names its results", g.Name)
	}
	f.stmts(g.Stmts[:n-1])
	y := g.Stmts[n-1].Yield
	if f.done {
		f.fail("graph %s ends before its last statement, the only one that may be yield", g.Name)
	}
	var names []string
	var values []*ir.Value
	for _, e := range y.Args {
		v := f.eval(e)
		if f.at = e.Pos; v == nil {
			continue
		}
		value, ok := v.(*ir.Value)
		if !ok || e.Kind != syntax.ValueRef {
			f.fail("graph %s: %s is no result: write the name of a value, with %%", g.Name, e)
		}
		names, values = append(names, e.Text[1:]), append(values, value)
	}
	f.at = y.Pos
	f.must(f.host.Results(names, values))
	f.writing = nil
}

// must fails for an error of the host.
func (f *frame) must(err error) {
	if err != nil {
		f.fail("%v", err)
	}
}

// input declares an input of the graph that the module writes. A size is that of a dim, or a
// number.
func (f *frame) input(in *syntax.Input) {
	if f.writing != f {
		f.fail("an input has no place outside of a graph; values of other modules are arguments")
	}
	elem, ok := tensor.ParseDType(in.Type.Elem)
	if !ok {
		f.fail("input %s: unknown element type %s, want a type such as f32 or i32", in.Name, in.Type.Elem)
	}
	t := ir.Type{Elem: elem}
	for _, e := range in.Type.Sizes {
		if i := slices.IndexFunc(f.dims, func(d *ir.Dim) bool { return e.Kind == syntax.NameRef && d.Name == e.Text }); i >= 0 {
			t.Shape = append(t.Shape, ir.Size{Dim: f.dims[i]})
			continue
		}
		n, isInt := f.eval(e).(int)
		if f.at = e.Pos; !isInt || n < 1 {
			f.fail("input %s: the size %s is no number from 1", in.Name, e)
		}
		t.Shape = append(t.Shape, ir.Size{N: n})
	}
	v, err := f.host.Input(in.Name[1:], t)
	f.must(err)
	f.set(in.Name, v)
}
