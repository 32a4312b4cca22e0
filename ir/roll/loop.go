package roll

import (
	"cmp"
	"slices"

	"github.com/iflowc/iflowc/ir"
)

// A loop is n equal layers.
type loop struct {
	*roller
	first, n int
	before   []*ir.Op // ops in front of it
	carries  []*carry
}

// A carry is a value that each iteration hands to the next one.
type carry struct {
	init  *ir.Value
	from  place // where an iteration computes it; the layer is that of the first iteration
	param *ir.Value
}

// build returns the loop's repeat, and the ops in front of it.
func (l *loop) build() ([]*ir.Op, error) {
	span := l.layers[l.first]
	body := &ir.Block{Ops: l.body.Ops[span.Lo:span.Hi:span.Hi]}
	l.carry()
	results, err := l.results()
	if err != nil {
		return nil, err
	}
	for k, o := range body.Ops {
		for j := range o.Args {
			l.arg(k, j)
		}
		l.listAttrs(k)
	}
	var inits []ir.Arg
	var names []string
	for _, c := range l.carries {
		init := c.init
		if v := l.outside[init]; v != nil {
			init = v
		}
		inits, names = append(inits, ir.A(init)), append(names, l.resultName(results, c))
		body.Params = append(body.Params, c.param)
		body.Yield = append(body.Yield, l.op(l.first, c.from.op).Results[c.from.result])
	}
	attrs := ir.Attrs{{Name: "lo", Val: span.Index}, {Name: "hi", Val: span.Index + l.n}}
	o, err := ir.NewRegion(ir.Repeat, inits, attrs, body, names...)
	if err != nil {
		return nil, err
	}
	for v, c := range results {
		l.outside[v] = o.Results[slices.Index(l.carries, c)]
	}
	return append(l.before, o), nil
}

// resultName returns the name of the result that a carry has: for a result of the graph its own.
func (l *loop) resultName(results map[*ir.Value]*carry, c *carry) string {
	for _, y := range l.body.Yield {
		if results[y] == c {
			name := y.Name
			y.Name = l.fresh(name)
			return name
		}
	}
	return l.fresh("xn")
}

// carry finds the values that layers hand to each other.
func (l *loop) carry() {
	if l.n == 1 {
		return
	}
	span := l.layers[l.first]
	for k := range span.Hi - span.Lo {
		for j, a := range l.op(l.first, k).Args {
			if second := l.op(l.first+1, k).Args[j].Value; l.handedOver(a.Value, second) {
				l.carried(a.Value, l.at[second])
			}
		}
	}
}

// handedOver reports whether a value that the first layer reads is another one for the second,
// that the first has computed.
func (l *loop) handedOver(first, second *ir.Value) bool {
	return first != second && first.Kind != ir.Weight && first.Kind != ir.State && l.at[first].layer != l.first
}

// carried returns the carry of a value.
func (l *loop) carried(init *ir.Value, from place) *carry {
	for _, c := range l.carries {
		if c.init == init && c.from == from {
			return c
		}
	}
	c := &carry{init, from, &ir.Value{Name: l.fresh("x"), Kind: ir.Carry, Type: init.Type}}
	l.carries = append(l.carries, c)
	return c
}

// results adds carries for the values of the last layer that are read after it and returns
// those of each.
func (l *loop) results() (map[*ir.Value]*carry, error) {
	out := map[*ir.Value]*carry{}
	last := l.first + l.n - 1
	span := l.layers[last]
	var read []*ir.Value
	for k := span.Lo; k < span.Hi; k++ {
		for _, v := range l.body.Ops[k].Results {
			if slices.ContainsFunc(l.users[v], func(u int) bool { return u != last }) {
				read = append(read, v)
			}
		}
	}
	slices.Reverse(read) // a layer's own result is its last
	for _, v := range read {
		from := l.at[v]
		from.layer = l.first
		i := slices.IndexFunc(l.carries, func(c *carry) bool { return c.from == from })
		if i < 0 {
			init, err := l.initial(v)
			if err != nil {
				return nil, err
			}
			l.carried(init, from)
			i = len(l.carries) - 1
		}
		out[v] = l.carries[i]
	}
	if l.n == 1 {
		slices.Reverse(l.carries)
	}
	return out, nil
}

// initial returns what a value of a loop is before its first iteration. A loop of one
// iteration may read it: it is the last value of the same type that the layer reads, as the
// residual stream is.
func (l *loop) initial(v *ir.Value) (*ir.Value, error) {
	var of, taken, any *ir.Value
	span := l.layers[l.first]
	for _, o := range l.body.Ops[span.Lo:span.Hi] {
		for _, a := range o.Args {
			if a.Kind == ir.Weight || a.Kind == ir.State || l.at[a.Value].layer == l.first {
				continue
			}
			switch any = a.Value; {
			case !a.Type.Equal(v.Type):
			case slices.ContainsFunc(l.carries, func(c *carry) bool { return c.init == a.Value }):
				taken = a.Value
			default:
				of = a.Value
			}
		}
	}
	if of = cmp.Or(of, taken); of != nil {
		return of, nil
	}
	o, err := zeros(any, v, l.fresh("none"))
	if err != nil {
		return nil, err
	}
	l.before = append(l.before, o)
	return o.Results[0], nil
}

// arg makes argument j of op k of the body that of every iteration.
func (l *loop) arg(k, j int) {
	a := &l.op(l.first, k).Args[j]
	if a.Kind == ir.Weight || a.Kind == ir.State {
		l.index(k, j)
		return
	}
	for _, c := range l.carries {
		switch {
		case c.init != a.Value:
		case l.n == 1, l.at[l.op(l.first+1, k).Args[j].Value] == c.from:
			a.Value = c.param
			return
		}
	}
	if v := l.outside[a.Value]; v != nil {
		a.Value = v
	}
}

// index makes the index of an element that of every iteration.
func (l *loop) index(k, j int) {
	a := &l.op(l.first, k).Args[j]
	n := constant(*a)
	switch {
	case n < 0:
	case l.n > 1 && constant(l.op(l.first+1, k).Args[j]) == n:
	case l.n == 1 && l.ofOthers(element{a.Value, n}):
	default:
		a.Index = indexOf(n - l.layers[l.first].Index)
	}
}

// ofOthers reports whether an element that the only layer of a loop reads belongs to others.
func (l *loop) ofOthers(e element) bool {
	writer, written := l.writer[e]
	return l.shared[e] && !(written && writer == l.first)
}

// listAttrs gives op k of the body lists of the attributes that differ between layers.
func (l *loop) listAttrs(k int) {
	o := l.op(l.first, k)
	for i := range o.Def.Attrs {
		d := &o.Def.Attrs[i]
		if !perLayer(d) {
			continue
		}
		if d.Kind == ir.PerLayerInt {
			setList(l, o, k, d, func(o *ir.Op) int { return o.IntAt(d.Name, 0) })
		} else {
			setList(l, o, k, d, func(o *ir.Op) float64 { return o.FloatAt(d.Name, 0) })
		}
	}
}

// setList sets a list of one attribute, unless all layers agree.
func setList[N int | float64](l *loop, o *ir.Op, k int, d *ir.AttrDef, of func(o *ir.Op) N) {
	var list []N
	for i := range l.n {
		list = append(list, of(l.op(l.first+i, k)))
	}
	if slices.ContainsFunc(list, func(n N) bool { return n != list[0] }) {
		o.SetAttr(d.Name, list)
	}
}
