package spec

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/roll"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A text is a graph being written. Its ops refer to values by name, and to the weights and
// states of single layers: the arrays that hold these are known only at the end.
type text struct {
	*ir.Graph
	values map[string]*ir.Value // by name, with %
	refs   map[string]*ir.Value // weights and states of layers, by reference
	yield  []yielded
	layers []roll.Layer
	used   map[string]int
	hints  map[*ir.Value]string
	err    error // the first error; ops behind it are not written
}

// A yielded value is a result of the graph and has a name of its own.
type yielded struct{ name, value string }

func newText(refs map[string]*ir.Value) *text {
	g := &ir.Graph{Dims: []*ir.Dim{{Name: "T", Role: "tokens"}, {Name: "R", Role: "out_rows"}, {Name: "S", Role: "sequences"}}, Body: &ir.Block{}}
	return &text{Graph: g, values: map[string]*ir.Value{}, refs: refs, used: map[string]int{}, hints: map[*ir.Value]string{}}
}

// fresh returns an unused value name: %q, %q_2, …
func (t *text) fresh(hint string) string {
	t.used[hint]++
	if n := t.used[hint]; n > 1 {
		return fmt.Sprintf("%%%s_%d", hint, n)
	}
	return "%" + hint
}

// input declares an input with a row of the given sizes for each of a dim.
func (t *text) input(name string, elem tensor.DType, dim string, sizes ...int) {
	v := &ir.Value{Name: name, Kind: ir.Input, Type: ir.Type{Elem: elem}}
	for _, d := range t.Dims {
		if d.Name == dim {
			v.Type.Shape = []ir.Size{{Dim: d}}
		}
	}
	for _, n := range sizes {
		v.Type.Shape = append(v.Type.Shape, ir.Size{N: n})
	}
	t.Inputs, t.values["%"+name] = append(t.Inputs, v), v
}

// op writes `%hint = op args {attrs}` and returns the value's name.
func (t *text) op(hint, op string, args []string, a attrs) string {
	return t.results([]string{hint}, op, args, a)[0]
}

// effect writes an op without results.
func (t *text) effect(op string, args []string) { t.results(nil, op, args, nil) }

// results writes an op and returns the names of its results.
func (t *text) results(hints []string, op string, args []string, a attrs) []string {
	def := ops.Table.Lookup(op)
	if def == nil {
		panic("bug: no op " + op)
	}
	names := make([]string, len(hints))
	for i, h := range hints {
		names[i] = t.fresh(h)
	}
	var list []*ir.Value
	for _, name := range args {
		v := t.value(name)
		if v == nil {
			return names
		}
		list = append(list, v)
	}
	if vs, err := t.add(def, list, ir.Attrs(a), hints); err == nil {
		for i, v := range vs {
			t.values[names[i]] = v
		}
	}
	return names
}

// value returns what a name or reference stands for; nil behind an error.
func (t *text) value(name string) *ir.Value {
	v := t.values[name]
	if v == nil {
		v = t.refs[name]
	}
	if v == nil && t.err == nil {
		t.err = fmt.Errorf("bug: no value %s", name)
	}
	return v
}

// add adds an op to the graph.
func (t *text) add(def *ir.OpDef, values []*ir.Value, a ir.Attrs, hints []string) ([]*ir.Value, error) {
	if t.err != nil {
		return nil, t.err
	}
	args := make([]ir.Arg, len(values))
	for i, v := range values {
		args[i] = ir.A(v)
	}
	var o *ir.Op
	if len(hints) == 1 {
		o, t.err = ir.NewOpLike(def, args, a, hints[0])
	} else {
		o, t.err = ir.NewOp(def, args, a, hints...)
	}
	if t.err != nil {
		return nil, t.err
	}
	for _, v := range o.Results {
		t.hints[v] = v.Name
	}
	t.Body.Ops = append(t.Body.Ops, o)
	return o.Results, nil
}

// begin begins a layer, which end ends.
func (t *text) begin(layer int) {
	t.layers = append(t.layers, roll.Layer{Lo: len(t.Body.Ops), Index: layer})
}

func (t *text) end() { t.layers[len(t.layers)-1].Hi = len(t.Body.Ops) }

// finish makes loops of the layers. elements has the array, and the index in it, of each
// weight and state of a layer.
func (t *text) finish(elements map[*ir.Value]ir.Arg) error {
	for _, o := range t.Body.Ops {
		for i := range o.Args {
			if e, ok := elements[o.Args[i].Value]; ok {
				o.Args[i] = e
			}
		}
	}
	for i, v := range t.Body.Ops {
		for k, r := range v.Results { // unique until they are numbered
			r.Name = fmt.Sprintf("v%d_%d", i, k)
		}
	}
	for _, y := range t.yield {
		t.Body.Yield = append(t.Body.Yield, t.values[y.value])
	}
	if err := roll.Layers(t.Graph, t.layers); err != nil {
		return err
	}
	t.number(elements)
	return nil
}

// number gives the results of the graph their names, and numbers other values in the order
// of their definitions.
func (t *text) number(elements map[*ir.Value]ir.Arg) {
	n := numbering{t.hints, map[string]int{}, map[*ir.Value]bool{}}
	for _, v := range t.Inputs {
		n.used[v.Name]++
	}
	for _, e := range elements {
		if e.Kind == ir.State {
			n.used[e.Name] = 1
		}
	}
	for i, v := range t.Body.Yield {
		if v.Kind == ir.Result {
			v.Name, n.fixed[v] = t.yield[i].name, true
			n.used[v.Name]++
		}
	}
	n.block(t.Body)
}

type numbering struct {
	hints map[*ir.Value]string
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
		hint, ok := n.hints[v]
		if !ok { // a loop's
			hint = numberBehind.ReplaceAllString(v.Name, "")
		}
		v.Name = hint
		if n.used[hint]++; n.used[hint] > 1 {
			v.Name = fmt.Sprintf("%s_%d", hint, n.used[hint])
		}
	}
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
