package layout

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A Graph is an entry point of the step.
type Graph struct {
	*ir.Graph
	Entry    int // its index
	Lookups  []Lookup
	Outputs  []manifest.Output
	At       int             // index of the first output among the step's arrays
	Reads    []manifest.Read // outputs of an earlier step
	Schedule []Node

	earlier []*ir.Value
}

// A Lookup is a per-token input that selects a row of a table.
type Lookup struct {
	Field string // of the step
	Below int    // rows of the table
}

// A Node of a schedule is a region, or a loop over regions.
type Node struct {
	Region *Region
	Loop   *Loop
}

// A Loop runs its regions once for each layer from Lo to Hi−1.
type Loop struct {
	Lo, Hi  int
	Regions []*Region
}

// Layers is the number of iterations; 1 without a loop.
func (l *Loop) Layers() int {
	if l == nil {
		return 1
	}
	return l.Hi - l.Lo
}

// InputFields maps a graph's inputs to arrays of the step.
var InputFields = map[string]string{"ids": "id", "pos": "pos", "out_rows": "out_row", "types": "types"}

// isIDs reports whether an input is integers, not rows of floats.
func isIDs(in *ir.Value) bool { return in.Type.Elem == tensor.I32 }

func (l *Layout) addGraph(entry int, gr *ir.Graph) error {
	g := &Graph{Graph: gr, Entry: entry, Lookups: lookups(gr), earlier: earlier(l.Module, gr)}
	g.At = len(g.earlier) // after the results that it reads, which are kept
	for _, y := range gr.Body.Yield {
		g.Outputs = append(g.Outputs, manifest.Output{Name: y.OutputName(), Rows: y.Role(), Cols: Round16(y.Type.Cols()), Used: y.Type.Cols()})
	}
	uses := ir.Uses(gr)
	for i, y := range g.earlier {
		if in := gr.Input(y.OutputName()); in != nil && len(uses[in]) > 0 {
			g.Reads = append(g.Reads, manifest.Read{At: i, Cols: Round16(in.Type.Cols())})
		}
	}
	if err := g.check(uses); err != nil {
		return err
	}
	l.Graphs = append(l.Graphs, g)
	l.reserve(gr.Body)
	l.placeOutputs(g)
	for _, in := range gr.Inputs {
		if isIDs(in) || len(uses[in]) == 0 {
			continue
		}
		if err := l.placeInput(g, in); err != nil {
			return err
		}
	}
	s := &scheduler{l: l, graph: g, uses: uses}
	if err := s.block(gr.Body); err != nil {
		return err
	}
	return s.outputs()
}

func lookups(gr *ir.Graph) (list []Lookup) {
	for _, op := range gr.FindOps("embed") {
		in := op.Args[0].Value
		if field, ok := InputFields[in.Name]; ok && in.Kind == ir.Input && in.Role() == "tokens" {
			list = append(list, Lookup{field, op.Args[1].Type.Shape[0].N})
		}
	}
	return list
}

// A scheduler divides the ops of a graph into regions, in order.
type scheduler struct {
	l     *Layout
	graph *Graph
	uses  map[*ir.Value][]ir.Use
	loop  *Loop
}

func (s *scheduler) block(b *ir.Block) error {
	for i := 0; i < len(b.Ops); i++ {
		op := b.Ops[i]
		var err error
		switch {
		case op.Def.Name == "repeat":
			err = s.repeat(op)
		case op.Def.Name == "quantize_act":
			// Packing is part of the matmul that reads it.
		case op.Def.Is(ir.Collective):
			behind := rowOps(b.Ops[i+1:], op)
			err = s.exchange(op, behind)
			i += len(behind)
		case isRowOp(op):
			list := rowOps(b.Ops[i:], op)
			err = s.rows(list)
			i += len(list) - 1
		case op.Def.Name == "short_conv" && i+1 < len(b.Ops) && s.activates(b.Ops[i+1], op):
			i++
			err = s.recurrent(op, b.Ops[i])
		default:
			err = s.root(op)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// activates reports whether an op is the activation of a convolution, which alone
// reads its result.
func (s *scheduler) activates(act, conv *ir.Op) bool {
	x := conv.Result()
	return act.Def.Name == "silu" && act.Args[0].Value == x && len(s.uses[x]) == 1
}

// rowOps returns the leading row ops of ops with as many rows as op. After a send it
// returns none, because a send has no result.
func rowOps(ops []*ir.Op, op *ir.Op) []*ir.Op {
	if op.Def.Is(ir.Collective) && len(op.Results) == 0 {
		return nil
	}
	j := 0
	for j < len(ops) && isRowOp(ops[j]) && firstRow(ops[j]).Role() == firstRow(op).Role() {
		j++
	}
	return ops[:j]
}

// firstRow returns a value with the op's row count.
func firstRow(op *ir.Op) *ir.Value {
	if len(op.Results) > 0 {
		return op.Results[0]
	}
	return op.Args[len(op.Args)-1].Value
}

// repeat adds a loop. Each carried value has the same place in all iterations; a value
// in another place is copied there.
func (s *scheduler) repeat(op *ir.Op) error {
	if s.loop != nil {
		return fmt.Errorf("%s: a repeat inside a repeat; unroll one of them", Position(op))
	}
	var first []*ir.Value
	for _, a := range op.Args {
		first = append(first, a.Value)
	}
	if err := s.carry(op, first); err != nil {
		return err
	}
	s.loop = &Loop{Lo: op.Int("lo"), Hi: op.Int("hi")}
	s.graph.Schedule = append(s.graph.Schedule, Node{Loop: s.loop})
	if err := s.block(op.Body); err != nil {
		return err
	}
	if err := s.carry(op, op.Body.Yield); err != nil {
		return err
	}
	s.loop = nil
	for _, r := range op.Results {
		s.l.keep(r)
	}
	return nil
}

// A move is a copy of a value to the place of a carried value.
type move struct {
	value, carried *ir.Value
	from, to       Place
}

// carry copies values to the places of a repeat's carried values, unless they share
// them. It orders the copies so that none is overwritten before it is copied.
func (s *scheduler) carry(rep *ir.Op, values []*ir.Value) error {
	var moves []move
	for i, v := range values {
		to := rep.Body.Params[i]
		s.l.keep(to)
		from, ok := s.l.places[v]
		if !ok {
			return fmt.Errorf("%s: %s is carried, but no region computes it", Position(rep), v)
		}
		if from.Buffer == nil || from.Buffer != s.l.places[to].Buffer {
			moves = append(moves, move{v, to, from, s.l.places[to]})
		}
	}
	for len(moves) > 0 {
		free := slices.IndexFunc(moves, func(m move) bool {
			return !slices.ContainsFunc(moves, func(o move) bool { return o.from.Buffer == m.to.Buffer })
		})
		if free < 0 { // a cycle: save one value in a temporary buffer
			moves[0].from = s.aside(moves[0])
			continue
		}
		m := moves[free]
		s.copy("carry_"+m.carried.Name, fmt.Sprintf("Carry %s to %s", m.value, m.carried), m.value, m.from, m.to)
		moves = slices.Delete(moves, free, free+1)
	}
	return nil
}

// aside copies a value to an unused buffer.
func (s *scheduler) aside(m move) Place {
	to := m.from
	to.Symbol = s.l.symbols.of("ASIDE_", m.value.Name)
	to.Buffer = &Buffer{Number: len(s.l.Buffers), Role: m.value.Role(), Cols: m.from.Pitch, slot: -1, used: true}
	s.l.Buffers = append(s.l.Buffers, to.Buffer)
	s.copy("aside_"+m.value.Name, fmt.Sprintf("Set %s aside", m.value), m.value, m.from, to)
	return to
}

// outputs copies the graph's results that no region writes directly to the caller.
func (s *scheduler) outputs() error {
	for i, y := range s.graph.Body.Yield {
		have, ok := s.l.places[y]
		if !ok {
			return fmt.Errorf("yield of %s, which no region computes", y)
		}
		if have.Buffer == nil && have.Output == s.graph.At+i {
			continue
		}
		to := s.l.place("OUT_", y)
		to.Output = s.graph.At + i
		s.copy("output_"+y.Name, fmt.Sprintf("Output %s", y), y, have, to)
	}
	return nil
}

func (s *scheduler) copy(name, doc string, v *ir.Value, from, to Place) {
	s.add(&Region{Name: name, Doc: doc, Role: v.Role(), Work: &Copy{From: from, To: to, Value: v}})
}

// add appends a region to the schedule.
func (s *scheduler) add(r *Region) *Region {
	r.Number, r.Graph, r.Loop = len(s.l.Regions), s.graph, s.loop
	s.l.Regions = append(s.l.Regions, r)
	if s.loop != nil {
		s.loop.Regions = append(s.loop.Regions, r)
	} else {
		s.graph.Schedule = append(s.graph.Schedule, Node{Region: r})
	}
	return r
}
