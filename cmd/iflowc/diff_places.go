//go:build unix

package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/ir/tensor/npz"
)

// places are the values of a graph that correspond to transformers' hidden
// states: the input of the first layer, the output of each layer, and for the
// last layer the output of the final norm.
type places struct {
	graph *ir.Graph
	list  []hiddenPlace
}

// A hiddenPlace is one value, at one iteration of its repeat.
type hiddenPlace struct {
	value *ir.Value
	iter  int // index of the enclosing repeat; -1: outside of one
	from  ir.Pos
	got   *tensor.Tensor
	raw   *hiddenPlace // of the last layer: the place before the final norm, which some models of transformers return (ModernBERT)
}

// isLayers reports whether an op is a run of layers: a repeat that changes its
// carried value. An encoder-decoder has another repeat that writes keys for the
// decoder.
func isLayers(o *ir.Op) bool {
	return o.Def == ir.Repeat && len(o.Args) > 0 && len(o.Body.Yield) > 0 && o.Body.Yield[0].Kind != ir.Carry
}

// hiddenPlaces finds the places from the graph's structure: layers are
// iterations of its repeats.
func hiddenPlaces(g *ir.Graph) *places {
	p := &places{graph: g}
	for i, o := range g.Body.Ops {
		if !isLayers(o) {
			continue
		}
		if len(p.list) == 0 {
			p.list = append(p.list, hiddenPlace{value: o.Args[0].Value, iter: -1, from: g.Body.Ops[0].Pos})
		}
		for n := o.Int("lo"); n < o.Int("hi"); n++ {
			p.list = append(p.list, hiddenPlace{value: o.Body.Yield[0], iter: n, from: o.Pos})
		}
		if last := finalValue(g, i); last != nil {
			end := &p.list[len(p.list)-1]
			raw := *end
			end.value, end.iter, end.raw = last, -1, &raw
		}
	}
	return p
}

// finalValue is the final hidden state of a graph whose last repeat is op at:
// the graph's result `hidden`, else the input of its head's first matmul; nil
// if more layers follow.
func finalValue(g *ir.Graph, at int) *ir.Value {
	rest := g.Body.Ops[at+1:]
	if slices.ContainsFunc(rest, isLayers) {
		return nil
	}
	for _, y := range g.Body.Yield {
		if y.Name == "hidden" {
			return y
		}
	}
	for _, o := range rest {
		if o.Def.Name == "matmul" {
			return o.Args[0].Value
		}
	}
	return g.Body.Ops[at].Results[0]
}

// see records the values of the places while the interpreter runs.
func (p *places) see(v *ir.Value, index []int, tpRank int, t *tensor.Tensor) {
	if tpRank != 0 {
		return
	}
	for i := range p.list {
		for h := &p.list[i]; h != nil; h = h.raw {
			if h.value == v && (h.iter < 0 && len(index) == 0 || len(index) == 1 && index[0] == h.iter) {
				h.got = t
			}
		}
	}
}

// compare compares the places with the arrays of the reference; kinds are the
// prefixes of their names.
func (p *places) compare(ref *npz.Archive, kinds []string, tokens int, tol float64) ([]layerDiff, error) {
	if a, err := ref.First(named(kinds, fmt.Sprintf("hidden.%d", len(p.list)))...); err != nil || a != nil {
		return nil, fmt.Errorf("%s: has hidden.%d, but graph %s has %d layers%s", ref.File, len(p.list), p.graph.Name, len(p.list)-1, because(err))
	}
	var out []layerDiff
	for n := range p.list {
		want, err := ref.First(named(kinds, fmt.Sprintf("hidden.%d", n))...)
		if err != nil {
			return nil, err
		}
		if want == nil {
			continue
		}
		h := &p.list[n]
		if h.got == nil {
			return nil, fmt.Errorf("graph %s: value %s was not computed; hidden.%d cannot be compared", p.graph.Name, h.value, n)
		}
		width := h.got.Shape[len(h.got.Shape)-1]
		shape := want.Shape
		if len(shape) == 3 && shape[0] == 1 {
			shape = shape[1:]
		}
		if !slices.Equal(shape, []int{tokens, width}) {
			return nil, fmt.Errorf("%s: hidden.%d has shape %v, want %d tokens of %d values: [%d %d]", ref.File, n, want.Shape, tokens, width, tokens, width)
		}
		d := h.against(want.F, width, tol)
		if d.Leaves && h.raw != nil && h.raw.got != nil {
			if e := h.raw.against(want.F, width, tol); !e.Leaves {
				d = e
			}
		}
		d.Graph, d.N, d.layers = p.graph.Name, n, len(p.list)-1
		out = append(out, d)
	}
	return out, nil
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// against returns the value of a place that differs most from the reference.
func (h *hiddenPlace) against(want []float64, width int, tol float64) layerDiff {
	d := layerDiff{Value: h.value.String(), Op: "input", Pos: position(h.value.Pos), from: h.from, Max: -1}
	if h.value.Op != nil {
		d.Op, d.Pos = h.value.Op.Def.Name, position(h.value.Op.Pos)
	}
	for i, w := range want {
		off := math.Abs(h.got.F[i] - w)
		if math.IsNaN(off) || math.IsInf(off, 0) {
			off = math.MaxFloat64
		}
		if !math.IsNaN(w) && !math.IsInf(w, 0) {
			d.Largest = max(d.Largest, math.Abs(w))
		}
		if off > d.Max {
			d.Max, d.token, d.channel, d.have, d.want = off, i/width, i%width, h.got.F[i], w
		}
	}
	d.Limit = tol + tol*d.Largest
	d.Leaves = d.Max > d.Limit
	return d
}

func position(p ir.Pos) string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }
