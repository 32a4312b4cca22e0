package irtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Canonical returns what a module computes in one form, whatever its names, the arrays
// that hold its weights and states, its loops, and the order of ops that do not depend on
// each other. Loops are unrolled. Every element of an array of weights or states has a
// declaration of its own, except that the experts that one op reads remain an array. Values
// and declarations are named and ordered by their first use, ops by the first op on a
// state or result that needs them. Names of graphs, inputs and results stay, as they are
// a contract. Modules that differ in no more have the same text.
//
// It returns an error for a module with par regions, or whose weights read others.
func Canonical(m *ir.Module) (*ir.Module, error) {
	c := &canonical{out: &ir.Module{Name: "canonical"}, elements: map[string]*ir.Value{}}
	graphs := slices.Clone(m.Graphs)
	slices.SortFunc(graphs, func(a, b *ir.Graph) int { return strings.Compare(a.Name, b.Name) })
	for _, g := range graphs {
		if err := c.graph(g); err != nil {
			return nil, err
		}
	}
	return c.out, nil
}

type canonical struct {
	out      *ir.Module
	elements map[string]*ir.Value // weights and states of the new module, by name and indices in the old one

	// The graph being unrolled.
	ops    []*ir.Op                // in their old order, on values of the new module
	values map[*ir.Value]*ir.Value // of the current iteration
	done   map[*ir.Op]bool         // ops of the new graph
	kept   map[string]bool         // names of inputs and results
	named  int
	body   *ir.Block
}

func (c *canonical) graph(g *ir.Graph) error {
	out := &ir.Graph{Name: g.Name, Dims: g.Dims, Inputs: g.Inputs, Body: &ir.Block{}}
	c.ops, c.values, c.done, c.kept, c.named, c.body = nil, map[*ir.Value]*ir.Value{}, map[*ir.Op]bool{}, map[string]bool{}, 0, out.Body
	for _, in := range g.Inputs {
		c.values[in], c.kept[in.Name] = in, true
	}
	for _, y := range g.Body.Yield {
		c.kept[y.Name] = true
	}
	if err := c.block(g.Body, nil, 0); err != nil {
		return fmt.Errorf("graph %s: %w", g.Name, err)
	}
	for _, o := range c.ops {
		if o.Def.Is(ir.Reads) || o.Def.Is(ir.Writes) {
			c.emit(o)
		}
	}
	for _, y := range g.Body.Yield {
		v := c.values[y]
		c.need(v)
		if v.Kind == ir.Result {
			v.Name = y.Name
		}
		out.Body.Yield = append(out.Body.Yield, v)
	}
	c.out.Graphs = append(c.out.Graphs, out)
	return nil
}

// block unrolls a block in which the enclosing loops have the given indices; iteration is
// that of the innermost, counted from 0.
func (c *canonical) block(b *ir.Block, at []int, iteration int) error {
	for _, o := range b.Ops {
		var err error
		switch o.Def {
		case ir.Repeat:
			err = c.repeat(o, at)
		case ir.Fuse:
			if err = c.block(o.Body, at, iteration); err == nil {
				c.bind(o.Results, c.now(o.Body.Yield))
			}
		case ir.Par:
			err = fmt.Errorf("has par regions")
		default:
			err = c.op(o.AtIteration(iteration), o.Results, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *canonical) repeat(o *ir.Op, at []int) error {
	var carried []*ir.Value
	for _, a := range o.Args {
		carried = append(carried, c.values[a.Value])
	}
	lo, hi := o.Int("lo"), o.Int("hi")
	for i := lo; i < hi; i++ {
		c.bind(o.Body.Params, carried)
		if err := c.block(o.Body, append(slices.Clone(at), i), i-lo); err != nil {
			return err
		}
		carried = c.now(o.Body.Yield)
	}
	c.bind(o.Results, carried)
	return nil
}

// now returns the values of the new module that values of the old one stand for.
func (c *canonical) now(old []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(old))
	for i, v := range old {
		out[i] = c.values[v]
	}
	return out
}

func (c *canonical) bind(old, now []*ir.Value) {
	for i, v := range old {
		c.values[v] = now[i]
	}
}

func (c *canonical) op(o *ir.Op, results []*ir.Value, at []int) error {
	n := &ir.Op{Def: o.Def, Attrs: o.Attrs}
	for i, a := range o.Args {
		v := c.values[a.Value]
		if a.Kind == ir.Weight || a.Kind == ir.State {
			var err error
			if v, err = c.element(o, i, at); err != nil {
				return err
			}
		}
		n.Args = append(n.Args, ir.A(v))
	}
	for _, r := range results {
		v := &ir.Value{Kind: ir.Result, Type: r.Type, Op: n}
		n.Results = append(n.Results, v)
		c.values[r] = v
	}
	c.ops = append(c.ops, n)
	return nil
}

// element returns the declaration of the element of a weight or state that an argument
// selects. It is declared, with a name, once an op that uses it is emitted.
func (c *canonical) element(o *ir.Op, arg int, at []int) (*ir.Value, error) {
	a := o.Args[arg]
	index, err := a.At(at, o.IndexCount(arg))
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(a.Value, index)
	if v := c.elements[key]; v != nil {
		return v, nil
	}
	v := &ir.Value{Kind: a.Kind, Type: a.Type, State: a.State}
	if rest := a.Count[min(len(index), len(a.Count)):]; len(rest) > 0 {
		v.Count = rest
	}
	if v.Transform, err = elementTransform(a.Transform, index); err != nil {
		return nil, err
	}
	c.elements[key] = v
	return v, nil
}

// elementTransform returns the transform of the elements of a weight whose first indices
// are given. Its variables are the remaining indices.
func elementTransform(r *tensor.Transform, index []int) (*tensor.Transform, error) {
	if r == nil {
		return nil, nil
	}
	out := *r
	if r.Op == "weight" {
		return nil, fmt.Errorf("weight %s reads another one", r.Name)
	}
	out.Args = nil
	for _, a := range r.Args {
		e, err := elementTransform(a, index)
		if err != nil {
			return nil, err
		}
		out.Args = append(out.Args, e)
	}
	if r.Op != "source" {
		return &out, nil
	}
	holes, err := tensor.SourceIndices(r.Name)
	if err != nil {
		return nil, err
	}
	rest, name := r.Name, ""
	for _, x := range holes {
		before, after, _ := strings.Cut(rest, "{")
		_, rest, _ = strings.Cut(after, "}")
		if x, err = substitute(x, index); err != nil {
			return nil, err
		}
		name += before
		if x.Constant() {
			name += x.String()
		} else {
			name += "{" + x.String() + "}"
		}
	}
	out.Name = name + rest
	return &out, nil
}

// substitute returns an index whose first variables have the given values.
func substitute(x tensor.Index, first []int) (tensor.Index, error) {
	switch x.Op {
	case tensor.IndexConst:
		return x, nil
	case tensor.IndexVar:
		if x.N < len(first) {
			return tensor.ConstIndex(first[x.N]), nil
		}
		return tensor.VarIndex(x.N - len(first)), nil
	}
	a, err := substitute(*x.X, first)
	if err != nil {
		return x, err
	}
	b, err := substitute(*x.Y, first)
	if err != nil {
		return x, err
	}
	out := tensor.Index{Op: x.Op, X: &a, Y: &b}
	if !out.Constant() {
		return out, nil
	}
	n, err := out.At(nil)
	return tensor.ConstIndex(n), err
}

// need emits the op that defines a value, unless it is emitted.
func (c *canonical) need(v *ir.Value) {
	if v.Kind == ir.Result {
		c.emit(v.Op)
	}
}

// emit adds an op to the new graph, after the ops that it needs.
func (c *canonical) emit(o *ir.Op) {
	if c.done[o] {
		return
	}
	c.done[o] = true
	for _, a := range o.Args {
		c.need(a.Value)
		c.declare(a.Value)
	}
	for _, r := range o.Results {
		for r.Name = ""; r.Name == "" || c.kept[r.Name]; c.named++ {
			r.Name = fmt.Sprintf("v%d", c.named)
		}
	}
	c.body.Ops = append(c.body.Ops, o)
}

func (c *canonical) declare(v *ir.Value) {
	switch {
	case v.Name != "":
	case v.Kind == ir.Weight:
		v.Name = fmt.Sprintf("w%d", len(c.out.Weights))
		c.out.Weights = append(c.out.Weights, v)
	case v.Kind == ir.State:
		v.Name = fmt.Sprintf("s%d", len(c.out.States))
		c.out.States = append(c.out.States, v)
	}
}
