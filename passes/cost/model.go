package cost

import (
	"errors"
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// A Part is what a piece of a model costs: a layer, or the head.
type Part struct {
	Bytes    int64   // of weights that a device holds for it
	Read     float64 // bytes of them that every step reads
	Experts  []Experts
	MACs     float64 // multiply-adds a row, those of chosen experts among them
	RowBytes int64   // of keys and values a token
	Attend   float64 // multiply-adds a row and token of its context
	Heads    int     // of keys and values, which ranks of a tensor group share whole; 0: any part will do
	Gives    []int   // floats a row that each rank of a tensor group gives at each exchange
}

// Experts are the alternatives of a mixture, of which each token reads some.
type Experts struct {
	N, Chosen int
	Bytes     float64 // of one
}

// A Model is what its graph costs.
type Model struct {
	Name   string
	Embed  int64 // bytes of the table of tokens
	Tied   bool  // it is the head's matrix
	Layers []Part
	Head   Part // for an output row
	Hidden int  // floats a row that a stage sends to the next

	// Split reports whether the layers can be shared by n devices; nil: they cannot.
	Split func(n int) error
}

// Of reads the costs of a module whose weights have their types. split gives the
// same module with its layers split over n devices by the pass partition, from
// which the exchanges are counted, or says why they cannot be; nil: never.
func Of(m *ir.Module, split func(n int) (*ir.Module, error)) (*Model, error) {
	g := mainGraph(m)
	if g == nil {
		return nil, fmt.Errorf("module %s has no graph", m.Name)
	}
	c := &Model{Name: m.Name}
	multiplied := map[*ir.Value]bool{}
	var tables []*ir.Value
	for _, op := range g.Body.Ops {
		switch op.Def.Name {
		case "repeat":
			layer := partOf(op.Body, multiplied)
			for range op.Int("hi") - op.Int("lo") {
				c.Layers = append(c.Layers, layer)
			}
			if t := op.Results[0].Type; len(t.Shape) == 2 {
				c.Hidden = t.Cols()
			}
		case "embed":
			tables = append(tables, op.Args[1].Value)
		default:
			c.Head.add(op, multiplied)
		}
	}
	for _, t := range tables {
		c.Embed += bytesOf(t)
		c.Tied = c.Tied || multiplied[t]
	}
	if len(c.Layers) == 0 {
		return nil, fmt.Errorf("graph %s of module %s has no layers", g.Name, m.Name)
	}
	if split == nil {
		return c, nil
	}
	if two, err := split(2); err == nil {
		c.countExchanges(two)
	}
	c.Split = func(n int) error {
		_, err := split(n)
		return reason(err, n)
	}
	return c, nil
}

// reason leaves out of the pass's error what is clear from the context.
func reason(err error, n int) error {
	if err == nil {
		return nil
	}
	if _, text, ok := strings.Cut(err.Error(), fmt.Sprintf("over %d devices: ", n)); ok {
		return errors.New(text)
	}
	return err
}

// mainGraph returns the graph that gives the results: decode, else the last one.
func mainGraph(m *ir.Module) *ir.Graph {
	if g := m.Graph("decode"); g != nil || len(m.Graphs) == 0 {
		return g
	}
	return m.Graphs[len(m.Graphs)-1]
}

// partOf sums up a block's ops.
func partOf(b *ir.Block, multiplied map[*ir.Value]bool) (p Part) {
	for op := range b.All() {
		p.add(op, multiplied)
	}
	return p
}

// add counts one op.
func (p *Part) add(op *ir.Op, multiplied map[*ir.Value]bool) {
	switch op.Def.Name {
	case "experts":
		p.addExperts(op)
		return
	case "kv_append":
		for _, f := range op.Args[0].State.Fields {
			row := f.Elem.RowBytes(f.Shape[len(f.Shape)-1])
			for _, n := range f.Shape[:len(f.Shape)-1] {
				row *= n
			}
			p.RowBytes += int64(row)
		}
		return
	case "attention":
		p.Attend += 2 * float64(op.Args[0].Type.Cols())
		p.Heads = op.Int("kv_heads")
	case "embed":
		return
	}
	for _, a := range op.Args {
		if a.Kind != ir.Weight || multiplied[a.Value] && op.Def.Name != "matmul" {
			continue
		}
		n := bytesOf(a.Value)
		p.Bytes += n
		p.Read += float64(n)
		if op.Def.Name == "matmul" {
			multiplied[a.Value] = true
			p.MACs += float64(elements(a.Value))
		}
	}
}

// addExperts counts a mixture: all experts are held, the chosen ones computed.
func (p *Part) addExperts(op *ir.Op) {
	x := Experts{N: ops.ExpertsShapeOf(op).Experts}
	x.Chosen = x.N
	if r := op.Args[1].Op; r != nil && r.Def.Attr("top_k") != nil {
		x.Chosen = r.Int("top_k")
	}
	macs := 0.0
	for _, a := range op.Args[2:] {
		x.Bytes += float64(bytesOf(a.Value))
		if len(a.Type.Shape) == 2 {
			macs += float64(elements(a.Value))
		}
	}
	p.Bytes += int64(x.N) * int64(x.Bytes)
	p.MACs += macs * float64(x.Chosen)
	p.Experts = append(p.Experts, x)
}

// portion returns the part of a layer that the busiest of n ranks has: where they
// do not share the heads evenly, the one with one head more.
func (p *Part) portion(n int) float64 {
	if p.Heads == 0 || n >= p.Heads || p.Heads%n == 0 {
		return 1 / float64(n)
	}
	return float64((p.Heads+n-1)/n) / float64(p.Heads)
}

// read returns the number of bytes of the weights a step of n rows reads: of a mixture
// those experts that any row chooses, were the choices independent.
func (p *Part) read(n float64) float64 {
	sum := p.Read
	for _, x := range p.Experts {
		sum += float64(x.N) * x.Bytes * (1 - power(1-float64(x.Chosen)/float64(x.N), n))
	}
	return sum
}

// countExchanges reads from the split module what ranks give each other.
func (c *Model) countExchanges(split *ir.Module) {
	at := 0
	for _, op := range mainGraph(split).Body.Ops {
		if op.Def.Name != "repeat" {
			continue
		}
		var gives []int
		for o := range op.Body.All() {
			if o.Def.Is(ir.Collective) {
				gives = append(gives, o.Args[0].Type.Cols())
			}
		}
		for range op.Int("hi") - op.Int("lo") {
			if at < len(c.Layers) {
				c.Layers[at].Gives = gives
			}
			at++
		}
	}
}

// elements returns the number of numbers one element of an array weight has.
func elements(v *ir.Value) int64 {
	n := int64(1)
	for _, s := range v.Type.Shape {
		n *= int64(s.N)
	}
	return n
}

// bytesOf is what one element of an array weight takes.
func bytesOf(v *ir.Value) int64 {
	cols := v.Type.Shape[len(v.Type.Shape)-1].N
	if cols == 0 {
		return 0
	}
	return elements(v) / int64(cols) * int64(v.Type.Elem.RowBytes(cols))
}

// Bytes is what all weights take.
func (c *Model) Bytes() int64 {
	sum := c.Head.Bytes
	if !c.Tied {
		sum += c.Embed
	}
	for _, l := range c.Layers {
		sum += l.Bytes
	}
	return sum
}

// RowBytes is what keys and values of a token take in all layers.
func (c *Model) RowBytes() (sum int64) {
	for _, l := range c.Layers {
		sum += l.RowBytes
	}
	return sum
}
