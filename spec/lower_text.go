package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/roll"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A text is a graph being written: its ops refer to values, weights and states by their
// names, because the arrays that hold weights and states are known only at the end.
type text struct {
	name   string
	inputs []*ir.Value
	dims   map[string]*ir.Dim
	ops    []textOp
	yield  []yielded
	layers []roll.Layer
	used   map[string]int
	hints  map[string]string // of values, by name
}

// A yielded value is a result of the graph and has a name of its own.
type yielded struct{ name, value string }

type textOp struct {
	results []string
	op      string
	args    []string
	attrs   attrs
}

func newText() *text {
	return &text{used: map[string]int{}, hints: map[string]string{}, dims: map[string]*ir.Dim{
		"T": {Name: "T", Role: "tokens"}, "R": {Name: "R", Role: "out_rows"}, "S": {Name: "S", Role: "sequences"}}}
}

// fresh returns an unused value name: %q, %q_2, …
func (t *text) fresh(hint string) string {
	t.used[hint]++
	name := hint
	if n := t.used[hint]; n > 1 {
		name = fmt.Sprintf("%s_%d", hint, n)
	}
	t.hints[name] = hint
	return "%" + name
}

// input declares an input with a row of the given sizes for each of a dim.
func (t *text) input(name string, elem tensor.DType, dim string, sizes ...int) {
	v := &ir.Value{Name: name, Kind: ir.Input, Type: ir.Type{Elem: elem, Shape: []ir.Size{{Dim: t.dims[dim]}}}}
	for _, n := range sizes {
		v.Type.Shape = append(v.Type.Shape, ir.Size{N: n})
	}
	t.inputs = append(t.inputs, v)
}

// op writes `%hint = op args {attrs}` and returns the value's name.
func (t *text) op(hint, op string, args []string, a attrs) string {
	name := t.fresh(hint)
	t.add([]string{name}, op, args, a)
	return name
}

// effect writes an op without results.
func (t *text) effect(op string, args []string) { t.add(nil, op, args, nil) }

func (t *text) add(results []string, op string, args []string, a attrs) {
	t.ops = append(t.ops, textOp{slices.Clone(results), op, slices.Clone(args), slices.Clone(a)})
}

// begin begins a layer, which end ends.
func (t *text) begin(layer int) {
	t.layers = append(t.layers, roll.Layer{Lo: len(t.ops), Index: layer})
}

func (t *text) end() { t.layers[len(t.layers)-1].Hi = len(t.ops) }

// build adds the graph to a module that has all weights and states. refs has the references
// to them.
func (t *text) build(mod *ir.Module, refs map[string]ir.Arg) error {
	g := &ir.Graph{Name: t.name, Dims: []*ir.Dim{t.dims["T"], t.dims["R"], t.dims["S"]}, Inputs: t.inputs, Body: &ir.Block{}}
	b := &textBuilder{refs, map[string]*ir.Value{}}
	for _, v := range g.Inputs {
		b.values["%"+v.Name] = v
	}
	for i := range t.ops {
		op, err := b.op(&t.ops[i])
		if err != nil {
			return err
		}
		g.Body.Ops = append(g.Body.Ops, op)
	}
	for _, y := range t.yield {
		g.Body.Yield = append(g.Body.Yield, b.values[y.value])
	}
	if err := roll.Layers(g, t.layers); err != nil {
		return err
	}
	t.number(g)
	mod.Graphs = append(mod.Graphs, g)
	return nil
}

// number gives the results of the graph their names, and numbers other values in the order
// of their definitions.
func (t *text) number(g *ir.Graph) {
	n := numbering{t.hints, map[string]int{}, map[*ir.Value]bool{}}
	for _, v := range g.Inputs {
		n.used[v.Name]++
	}
	for i, v := range g.Body.Yield {
		if v.Kind == ir.Result {
			v.Name, n.fixed[v] = t.yield[i].name, true
			n.used[v.Name]++
		}
	}
	n.block(g.Body)
}

type numbering struct {
	hints map[string]string
	used  map[string]int
	fixed map[*ir.Value]bool
}

func (n *numbering) block(b *ir.Block) {
	for _, o := range b.Ops {
		n.values(o.Results)
		if o.Body != nil {
			n.values(o.Body.Params)
			n.block(o.Body)
		}
	}
}

var numberBehind = regexp.MustCompile(`_[0-9]+$`)

func (n *numbering) values(list []*ir.Value) {
	for _, v := range list {
		if n.fixed[v] {
			continue
		}
		hint, ok := n.hints[v.Name]
		if !ok { // a loop's
			hint = numberBehind.ReplaceAllString(v.Name, "")
		}
		v.Name = hint
		if n.used[hint]++; n.used[hint] > 1 {
			v.Name = fmt.Sprintf("%s_%d", hint, n.used[hint])
		}
	}
}

type textBuilder struct {
	refs   map[string]ir.Arg
	values map[string]*ir.Value
}

func (b *textBuilder) op(t *textOp) (*ir.Op, error) {
	def := ops.Table.Lookup(t.op)
	if def == nil {
		panic("bug: no op " + t.op)
	}
	var args []ir.Arg
	for _, name := range t.args {
		a, ok := b.refs[name]
		if !ok {
			if a.Value = b.values[name]; a.Value == nil {
				panic("bug: no value " + name)
			}
		}
		args = append(args, a)
	}
	names := make([]string, len(t.results))
	for i, name := range t.results {
		names[i] = name[1:]
	}
	o, err := ir.NewOp(def, args, ir.Attrs(t.attrs), names...)
	if err != nil {
		return nil, err
	}
	for i, name := range t.results {
		b.values[name] = o.Results[i]
	}
	return o, nil
}

// attrs are attributes in the order in which they were added.
type attrs ir.Attrs

func (a attrs) num(name string, v float64) attrs    { return append(a, ir.Attr{Name: name, Val: v}) }
func (a attrs) int(name string, v int) attrs        { return append(a, ir.Attr{Name: name, Val: v}) }
func (a attrs) word(name, v string) attrs           { return append(a, ir.Attr{Name: name, Val: v}) }
func (a attrs) flag(name string) attrs              { return append(a, ir.Attr{Name: name, Val: true}) }
func (a attrs) nums(name string, v []float64) attrs { return append(a, ir.Attr{Name: name, Val: v}) }
func (a attrs) ints(name string, v []int) attrs     { return append(a, ir.Attr{Name: name, Val: v}) }

// float32s widens values computed in float32, so that their shortest decimal form
// is that of the float32.
func float32s(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		f, err := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
		if err != nil {
			panic("bug: " + err.Error())
		}
		out[i] = f
	}
	return out
}
