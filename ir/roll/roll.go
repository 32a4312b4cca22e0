// Package roll finds the loops of a graph that has been written without them.
package roll

import (
	"fmt"
	"reflect"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A Layer is ops Lo to Hi-1 of a graph's body. Arguments that are elements of arrays have
// constant indices.
type Layer struct {
	Lo, Hi int
	Index  int // of its iteration
}

// Layers makes the layers of a graph's body into loops. Neighbors with equal ops become
// one loop; others become loops of one iteration. Layers are equal if they differ at most
// in per-layer attributes, in the elements of arrays, whose indices may grow with the
// layer's, and in the values that they read: each may read what the layer before has
// computed. The layers are in order and do not overlap.
func Layers(g *ir.Graph, layers []Layer) error {
	r := &roller{
		body: g.Body, layers: layers, layerOf: make([]int, len(g.Body.Ops)), at: map[*ir.Value]place{},
		users: map[*ir.Value][]int{}, writer: map[element]int{}, shared: map[element]bool{}, outside: map[*ir.Value]*ir.Value{}, names: map[string]bool{},
	}
	r.scan(g)
	out := &ir.Block{Yield: g.Body.Yield}
	next := 0
	for i := 0; i < len(layers); {
		n := 1
		for i+n < len(layers) && r.continues(i, n) {
			n++
		}
		out.Ops = append(out.Ops, g.Body.Ops[next:layers[i].Lo]...)
		l := &loop{roller: r, first: i, n: n}
		made, err := l.build()
		if err != nil {
			return err
		}
		out.Ops = append(out.Ops, made...)
		i += n
		next = layers[i-1].Hi
	}
	out.Ops = append(out.Ops, g.Body.Ops[next:]...)
	r.redirect(out)
	g.Body = out
	return nil
}

// A place is where a value is defined.
type place struct {
	layer      int // -1: in none
	op, result int // op of the layer, or of the graph's body
}

// An element is one of an array of weights or states.
type element struct {
	*ir.Value
	index int
}

type roller struct {
	body    *ir.Block
	layers  []Layer
	layerOf []int // layer of each op; -1: none
	at      map[*ir.Value]place
	users   map[*ir.Value][]int     // layers of the ops that use a value; -1: outside of layers
	writer  map[element]int         // the layer that writes a state
	shared  map[element]bool        // several layers use it
	outside map[*ir.Value]*ir.Value // the loop's result that a value of its last layer becomes
	names   map[string]bool
}

// scan finds where values are defined and used.
func (r *roller) scan(g *ir.Graph) {
	for i := range r.layerOf {
		r.layerOf[i] = -1
	}
	for k, l := range r.layers {
		for i := l.Lo; i < l.Hi; i++ {
			r.layerOf[i] = k
		}
	}
	user := map[element]int{}
	for i, o := range g.Body.Ops {
		layer, first := r.layerOf[i], 0
		if layer >= 0 {
			first = r.layers[layer].Lo
		}
		for k, v := range o.Results {
			r.at[v], r.names[v.Name] = place{layer, i - first, k}, true
		}
		for _, a := range o.Args {
			if a.Kind != ir.Weight && a.Kind != ir.State {
				r.users[a.Value] = append(r.users[a.Value], layer)
				continue
			}
			e := element{a.Value, constant(a)}
			if before, seen := user[e]; seen && before != layer {
				r.shared[e] = true
			}
			user[e] = layer
			if o.Def.Is(ir.Writes) && a.Kind == ir.State {
				r.writer[e] = layer
			}
		}
	}
	for _, v := range g.Inputs {
		r.at[v], r.names[v.Name] = place{-1, -1, 0}, true
	}
	for _, v := range g.Body.Yield {
		r.users[v] = append(r.users[v], -1)
	}
}

// constant returns the index of an argument; -1 if it has none.
func constant(a ir.Arg) int {
	if len(a.Index) == 0 || !a.Index[0].Constant() {
		return -1
	}
	return a.Index[0].N
}

// op returns an op of a layer.
func (r *roller) op(layer, k int) *ir.Op { return r.body.Ops[r.layers[layer].Lo+k] }

// continues reports whether layer i+n continues the loop of the n layers from i.
func (r *roller) continues(i, n int) bool {
	last, now := r.layers[i+n-1], r.layers[i+n]
	if last.Hi != now.Lo || last.Index+1 != now.Index || now.Hi-now.Lo != r.layers[i].Hi-r.layers[i].Lo {
		return false
	}
	for k := range now.Hi - now.Lo {
		if !r.sameOp(i, n, k) {
			return false
		}
	}
	for k := last.Lo; k < last.Hi; k++ { // what the last layer computes, only the next one may read
		for _, v := range r.body.Ops[k].Results {
			for _, u := range r.users[v] {
				if u != i+n-1 && u != i+n {
					return false
				}
			}
		}
	}
	return true
}

// sameOp reports whether op k of layer i+n does what it does in the loop of the n layers
// from i.
func (r *roller) sameOp(i, n, k int) bool {
	a, b := r.op(i, k), r.op(i+n, k)
	if a.Def != b.Def || a.Body != nil || b.Body != nil || len(a.Args) != len(b.Args) || len(a.Results) != len(b.Results) || !sameAttrs(a, b) {
		return false
	}
	for j := range a.Args {
		second := b.Args[j]
		if n > 1 {
			second = r.op(i+1, k).Args[j]
		}
		if !r.sameArg(i, n, a.Args[j], second, b.Args[j]) {
			return false
		}
	}
	return true
}

// sameArg reports whether argument now of layer i+n is that of a loop in which it is first
// in layer i, and second in layer i+1.
func (r *roller) sameArg(i, n int, first, second, now ir.Arg) bool {
	if first.Kind == ir.Weight || first.Kind == ir.State {
		a, b, c := constant(first), constant(second), constant(now)
		return first.Value == now.Value && len(first.Index) == len(now.Index) && (b == a && c == a || b == a+1 && c == a+n)
	}
	at := r.at[now.Value]
	if from := r.at[first.Value]; from.layer == i {
		return at == place{i + n, from.op, from.result}
	}
	if second.Value == first.Value {
		return now.Value == first.Value
	}
	from := r.at[second.Value]
	return from.layer == i && at == place{i + n - 1, from.op, from.result}
}

// sameAttrs reports whether ops have the same attributes, but for those of a layer.
func sameAttrs(a, b *ir.Op) bool {
	for _, d := range a.Def.Attrs {
		x, hasX := a.Attrs.Get(d.Name)
		y, hasY := b.Attrs.Get(d.Name)
		if !perLayer(&d) && (hasX != hasY || !reflect.DeepEqual(x, y)) {
			return false
		}
		if perLayer(&d) && hasX != hasY && absent(&d) == nil {
			return false
		}
	}
	return true
}

func perLayer(d *ir.AttrDef) bool { return d.Kind == ir.PerLayerInt || d.Kind == ir.PerLayerFloat }

// absent returns what a per-layer attribute is where it is absent; nil if it is then derived.
func absent(d *ir.AttrDef) any {
	switch {
	case d.Default != nil:
		return d.Default
	case d.Kind == ir.PerLayerInt:
		return 0
	}
	return nil
}

// redirect makes what follows a loop read its results.
func (r *roller) redirect(b *ir.Block) {
	for _, o := range b.Ops {
		for i := range o.Args {
			if v := r.outside[o.Args[i].Value]; v != nil {
				o.Args[i].Value = v
			}
		}
	}
	for i, y := range b.Yield {
		if v := r.outside[y]; v != nil {
			b.Yield[i] = v
		}
	}
}

// fresh returns an unused name: x, x_2, ….
func (r *roller) fresh(hint string) string {
	name := hint
	for n := 2; r.names[name]; n++ {
		name = fmt.Sprintf("%s_%d", hint, n)
	}
	r.names[name] = true
	return name
}

// indexOf returns the index i+by of the enclosing loop; nil for i.
func indexOf(by int) []ir.Index {
	i, n := ir.RegionIndex(0), ir.ConstIndex(max(by, -by))
	switch {
	case by > 0:
		return []ir.Index{{Op: tensor.IndexAdd, X: &i, Y: &n}}
	case by < 0:
		return []ir.Index{{Op: tensor.IndexSub, X: &i, Y: &n}}
	}
	return nil
}

// zeros returns an op that makes rows of zeros of the type of v, one for each of those of x.
func zeros(x, v *ir.Value, name string) (*ir.Op, error) {
	if s := v.Type.Shape; len(s) == 2 && s[1].Dim == nil {
		return ir.NewOp(ops.Fill, []ir.Arg{ir.A(x)}, ir.Attrs{{Name: "cols", Val: s[1].N}}, name)
	}
	return nil, fmt.Errorf("%s is read after its layer, and no value in front of it has its type %s", v, v.Type)
}
