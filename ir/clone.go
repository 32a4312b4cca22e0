package ir

import (
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
)

// Clone returns a deep copy of the module, except for the op definitions.
func (m *Module) Clone() *Module {
	c := cloner{values: map[*Value]*Value{}, dims: map[*Dim]*Dim{}}
	out := &Module{Name: m.Name, Pos: m.Pos, Weights: c.all(m.Weights), States: c.all(m.States)}
	for _, g := range m.Graphs {
		out.Graphs = append(out.Graphs, c.graph(g))
	}
	return out
}

type cloner struct {
	values map[*Value]*Value
	dims   map[*Dim]*Dim
}

func (c *cloner) graph(g *Graph) *Graph {
	out := &Graph{Name: g.Name, Pos: g.Pos}
	for _, d := range g.Dims {
		c.dims[d] = &Dim{d.Name, d.Role}
		out.Dims = append(out.Dims, c.dims[d])
	}
	out.Inputs = c.all(g.Inputs)
	out.Body = c.block(g.Body)
	return out
}

func (c *cloner) block(b *Block) *Block {
	out := &Block{Params: c.all(b.Params)}
	for _, o := range b.Ops {
		out.Ops = append(out.Ops, c.op(o))
	}
	out.Yield = c.all(b.Yield)
	return out
}

func (c *cloner) op(o *Op) *Op {
	out := &Op{Def: o.Def, Pos: o.Pos}
	for _, a := range o.Args {
		out.Args = append(out.Args, Arg{c.value(a.Value), slices.Clone(a.Index)})
	}
	for _, a := range o.Attrs {
		out.Attrs = append(out.Attrs, Attr{a.Name, cloneAttr(a.Val)})
	}
	for _, n := range o.Annotations {
		out.Annotations = append(out.Annotations, Annotation{n.Name, slices.Clone(n.Args)})
	}
	if o.Body != nil {
		out.Body = c.block(o.Body)
	}
	out.Results = c.all(o.Results)
	for _, r := range out.Results {
		r.Op = out
	}
	return out
}

func cloneAttr(val any) any {
	switch v := val.(type) {
	case []int:
		return slices.Clone(v)
	case []float64:
		return slices.Clone(v)
	}
	return val
}

func (c *cloner) all(vs []*Value) []*Value {
	var out []*Value
	for _, v := range vs {
		out = append(out, c.value(v))
	}
	return out
}

func (c *cloner) value(v *Value) *Value {
	if out := c.values[v]; out != nil {
		return out
	}
	out := &Value{}
	*out = *v
	out.Type.Shape = nil
	for _, s := range v.Type.Shape {
		if s.Dim != nil && c.dims[s.Dim] != nil {
			s.Dim = c.dims[s.Dim]
		}
		out.Type.Shape = append(out.Type.Shape, s)
	}
	out.Count = slices.Clone(v.Count)
	out.Transform = CloneTransform(v.Transform)
	if v.State != nil {
		st := *v.State
		st.Fields = nil
		for _, f := range v.State.Fields {
			f.Shape = slices.Clone(f.Shape)
			st.Fields = append(st.Fields, f)
		}
		out.State = &st
	}
	c.values[v] = out
	return out
}

// CloneTransform returns a deep copy of a transform; nil for nil.
func CloneTransform(r *tensor.Transform) *tensor.Transform {
	if r == nil {
		return nil
	}
	out := *r
	out.Nums = slices.Clone(r.Nums)
	out.Args = nil
	for _, a := range r.Args {
		out.Args = append(out.Args, CloneTransform(a))
	}
	return &out
}
