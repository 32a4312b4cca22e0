package cost

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// A Part is the cost of a layer or of the head.
type Part struct {
	Bytes    int64   // of its weights on a device
	Read     float64 // bytes of them that every step reads
	Experts  []Experts
	Weights  int64   // their number
	MACs     float64 // multiply-adds per row, including those of selected experts
	RowBytes int64   // of the KV cache per token
	State    int64   // bytes of the fixed-size states of a sequence
	Attend   float64 // multiply-adds per row and token of context
	Heads    int     // KV heads, which a TP group divides whole; 0: any division
	Gives    []int   // floats per row that each TP rank contributes at each exchange
	Gathers  []int   // floats per row that each TP rank has after each gathering, of which it contributes its part

	// Shares has the fraction of the weights on the busiest of n ranks, for the n
	// that Split was asked for.
	Shares map[int]float64
}

// Experts are the experts of a mixture, some of which each token uses.
type Experts struct {
	N, Chosen int
	Bytes     float64 // of one expert
}

// A Model is the cost of a graph.
type Model struct {
	Name   string
	Embed  int64 // bytes of the token embedding
	Tied   bool  // the head uses the same matrix
	Layers []Part
	Head   Part // per output row
	Hidden int  // floats per row that a stage sends to the next

	// Split reports whether the layers can be divided among n devices; nil:
	// they cannot.
	Split func(n int) error
}

// Of computes the cost of a module with typed weights. split returns the module
// with its layers divided among n devices by the pass partition, from which the
// exchanges are counted, or the reason why it cannot; nil: never.
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
		c.countShares(two, 2)
	}
	c.Split = func(n int) error {
		if c.Layers[0].Shares[n] == 0 {
			divided, err := split(n)
			if err != nil {
				return reason(err, n)
			}
			c.countShares(divided, n)
		}
		if !slices.ContainsFunc(c.Layers, func(l Part) bool { return l.Shares[n] < 1 }) {
			return errors.New("each device would have all of every layer; a file of IR must be that before quantization (iflowc ir MODEL --after lower)")
		}
		return nil
	}
	return c, nil
}

// reason removes known context from the pass's error.
func reason(err error, n int) error {
	if err == nil {
		return nil
	}
	if _, text, ok := strings.Cut(err.Error(), fmt.Sprintf("over %d devices: ", n)); ok {
		return errors.New(text)
	}
	return err
}

// mainGraph returns the graph with the results: decode, else the last one.
func mainGraph(m *ir.Module) *ir.Graph {
	if g := m.Graph("decode"); g != nil || len(m.Graphs) == 0 {
		return g
	}
	return m.Graphs[len(m.Graphs)-1]
}

// partOf adds up the ops of a block.
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
	case "linear_recurrence":
		p.Heads = ops.RecurrenceShapeOf(op).KeyHeads
	case "select_rows":
		p.Attend += float64(op.Args[0].Type.Cols())
	case "attention":
		p.Attend += 2 * float64(op.Args[0].Type.Cols())
		for _, flag := range []string{"rel_keys", "rel_queries"} {
			if op.Bool(flag) { // products with twice as many positions as a block has rows
				p.Attend += 2 * float64(op.Args[0].Type.Cols())
			}
		}
		p.Heads = op.Int("kv_heads")
	case "embed", "lora":
		return
	}
	if op.Def.Step != nil {
		n := op.Args[0].State.Fields[0].Elems()
		p.State += 4 * int64(n)
		p.MACs += 2 * float64(n) // what a token reads and adds
	}
	for _, a := range op.Args {
		if a.Kind != ir.Weight || multiplied[a.Value] && op.Def.Name != "matmul" {
			continue
		}
		n := bytesOf(a.Value)
		p.Bytes += n
		p.Read += float64(n)
		p.Weights += elements(a.Value)
		if op.Def.Name == "matmul" {
			multiplied[a.Value] = true
			p.MACs += float64(elements(a.Value))
		}
	}
}

// addExperts counts a mixture: all experts need memory, the selected ones
// compute.
func (p *Part) addExperts(op *ir.Op) {
	x := Experts{N: ops.ExpertsShapeOf(op).Experts}
	x.Chosen = x.N
	if r := op.Args[1].Op; r != nil && r.Def.Attr("top_k") != nil {
		x.Chosen = r.Int("top_k")
	}
	macs := 0.0
	for _, a := range op.Args[2:] {
		p.Weights += int64(x.N) * elements(a.Value)
		x.Bytes += float64(bytesOf(a.Value))
		if len(a.Type.Shape) == 2 {
			macs += float64(elements(a.Value))
		}
	}
	p.Bytes += int64(x.N) * int64(x.Bytes)
	p.MACs += macs * float64(x.Chosen)
	p.Experts = append(p.Experts, x)
}

// read returns the bytes of weights that a step of n rows reads. Of a mixture
// it counts the experts that some row selects, assuming independent choices.
func (p *Part) read(n float64) float64 {
	sum := p.Read
	for _, x := range p.Experts {
		sum += float64(x.N) * x.Bytes * (1 - power(1-float64(x.Chosen)/float64(x.N), n))
	}
	return sum
}

// elements returns the number of values in one element of an array weight.
func elements(v *ir.Value) int64 {
	n := int64(1)
	for _, s := range v.Type.Shape {
		n *= int64(s.N)
	}
	return n
}

// bytesOf returns the bytes of one element of an array weight.
func bytesOf(v *ir.Value) int64 {
	cols := v.Type.Shape[len(v.Type.Shape)-1].N
	if cols == 0 {
		return 0
	}
	return elements(v) / int64(cols) * int64(v.Type.Elem.RowBytes(cols))
}

// Bytes returns the bytes of all weights.
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

// RowBytes returns the bytes of the KV cache per token in all layers.
func (c *Model) RowBytes() (sum int64) {
	for _, l := range c.Layers {
		sum += l.RowBytes
	}
	return sum
}
