package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A text is a graph being written: its ops refer to values, weights and states by their
// names, as in the IR's text, because a state's layers are known only at the end.
type text struct {
	name   string
	inputs []*ir.Value
	dims   map[string]*ir.Dim
	body   *textBlock // being written
	used   map[string]int
}

// A textBlock is the body of a graph or repeat.
type textBlock struct {
	outer  *textBlock
	params []string
	ops    []textOp
	yield  []string
}

type textOp struct {
	results []string
	op      string
	args    []string
	attrs   attrs
	body    *textBlock // of a repeat
}

func newText() *text {
	return &text{body: &textBlock{}, used: map[string]int{}, dims: map[string]*ir.Dim{
		"T": {Name: "T", Role: "tokens"}, "R": {Name: "R", Role: "out_rows"}, "S": {Name: "S", Role: "sequences"}}}
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
	t.body.ops = append(t.body.ops, textOp{results: slices.Clone(results), op: op, args: slices.Clone(args), attrs: slices.Clone(a)})
}

// open begins a repeat, whose carried values are params, and inits before the first iteration.
func (t *text) open(results []string, lo, hi int, params, inits []string) {
	b := &textBlock{outer: t.body, params: slices.Clone(params)}
	t.body.ops = append(t.body.ops, textOp{results: slices.Clone(results), args: slices.Clone(inits), attrs: attrs{}.int("lo", lo).int("hi", hi), body: b})
	t.body = b
}

// close ends a repeat.
func (t *text) close(yield ...string) { t.body.yield, t.body = slices.Clone(yield), t.body.outer }

// rename renames the value from to to. If another value has that name already,
// the two names are swapped.
func (t *text) rename(from, to string) {
	if from != to {
		t.body.swap(from, to)
	}
}

func (b *textBlock) swap(from, to string) {
	in := func(names []string) {
		for i, name := range names {
			switch name {
			case from:
				names[i] = to
			case to:
				names[i] = from
			}
		}
	}
	in(b.params)
	in(b.yield)
	for _, o := range b.ops {
		in(o.results)
		in(o.args)
		if o.body != nil {
			o.body.swap(from, to)
		}
	}
}

// build adds the graph to a module that has all weights and states.
func (t *text) build(mod *ir.Module) error {
	g := &ir.Graph{Name: t.name, Dims: []*ir.Dim{t.dims["T"], t.dims["R"], t.dims["S"]}, Inputs: t.inputs}
	b := &textBuilder{values: map[string]*ir.Value{}}
	for _, v := range mod.Weights {
		b.values["@"+v.Name] = v
	}
	for _, list := range [][]*ir.Value{mod.States, g.Inputs} {
		for _, v := range list {
			b.values["%"+v.Name] = v
		}
	}
	var err error
	if g.Body, err = b.block(t.body, nil); err != nil {
		return err
	}
	mod.Graphs = append(mod.Graphs, g)
	return nil
}

type textBuilder struct{ values map[string]*ir.Value }

func (b *textBuilder) block(t *textBlock, inits []ir.Arg) (*ir.Block, error) {
	out := &ir.Block{}
	for i, name := range t.params {
		v := &ir.Value{Name: name[1:], Kind: ir.Carry, Type: inits[i].Type}
		b.values[name] = v
		out.Params = append(out.Params, v)
	}
	for _, o := range t.ops {
		op, err := b.op(o)
		if err != nil {
			return nil, err
		}
		out.Ops = append(out.Ops, op)
	}
	for _, name := range t.yield {
		out.Yield = append(out.Yield, b.value(name))
	}
	return out, nil
}

func (b *textBuilder) op(t textOp) (*ir.Op, error) {
	def, body := ir.Repeat, (*ir.Block)(nil)
	var args []ir.Arg
	for _, a := range t.args {
		arg, err := b.arg(a)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	if t.body != nil {
		var err error
		if body, err = b.block(t.body, args); err != nil {
			return nil, err
		}
	} else if def = ops.Table.Lookup(t.op); def == nil {
		panic("bug: no op " + t.op)
	}
	names := make([]string, len(t.results))
	for i, name := range t.results {
		names[i] = name[1:]
	}
	o, err := ir.NewRegion(def, args, ir.Attrs(t.attrs), body, names...)
	if err != nil {
		return nil, err
	}
	for i := range t.results {
		b.values[t.results[i]] = o.Results[i]
	}
	return o, nil
}

// arg returns the use of a value, weight or state, which may have an index.
func (b *textBuilder) arg(text string) (ir.Arg, error) {
	name, index, indexed := strings.Cut(strings.TrimSuffix(text, "]"), "[")
	a := ir.A(b.value(name))
	if indexed {
		x, err := tensor.ParseIndex(index)
		if err != nil {
			return a, err
		}
		a.Index = []ir.Index{x}
	}
	return a, nil
}

func (b *textBuilder) value(name string) *ir.Value {
	v := b.values[name]
	if v == nil {
		panic("bug: no value " + name)
	}
	return v
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
