package layout

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A Graph is one entry of the step.
type Graph struct {
	*ir.Graph
	Entry    int // its number
	Lookups  []Lookup
	Outputs  []manifest.Output
	At       int             // place of the first output among the arrays of a step
	Reads    []manifest.Read // outputs of an earlier step
	Schedule []Node

	earlier []*ir.Value
}

// A Lookup is an input of each token that selects a row of a table.
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

// InputFields are the arrays of a step behind a graph's inputs.
var InputFields = map[string]string{"ids": "id", "pos": "pos", "out_rows": "out_row", "types": "types"}

// isIDs says whether an input is numbers rather than rows of floats.
func isIDs(in *ir.Value) bool { return in.Type.Elem == tensor.I32 }

func (l *Layout) addGraph(entry int, gr *ir.Graph) error {
	g := &Graph{Graph: gr, Entry: entry, Lookups: lookups(gr), earlier: earlier(l.Module, gr)}
	g.At = len(g.earlier) // behind the results it reads, which stay
	for _, y := range gr.Body.Yield {
		g.Outputs = append(g.Outputs, manifest.Output{Name: y.OutputName(), Rows: y.Role(), Cols: Round16(y.Type.Cols()), Used: y.Type.Cols()})
	}
	uses := ir.Uses(gr)
	for i, y := range g.earlier {
		if in := gr.Input(y.OutputName()); in != nil && len(uses[in]) > 0 {
			g.Reads = append(g.Reads, manifest.Read{At: i, Cols: Round16(in.Type.Cols())})
		}
	}
	l.Graphs = append(l.Graphs, g)
	l.reserve(gr.Body)
	l.placeOutputs(g)
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

// A scheduler puts the ops of a graph into regions, in order.
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
		default:
			err = s.root(op)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rowOps lists the row ops that ops begin with, of as many rows as op has. A
// send yields nothing to go on with.
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

// firstRow is a value whose row count is the op's.
func firstRow(op *ir.Op) *ir.Value {
	if len(op.Results) > 0 {
		return op.Results[0]
	}
	return op.Args[len(op.Args)-1].Value
}

// repeat opens a loop. Carried values have one place each through all
// iterations; where a value does not lie there it is copied.
func (s *scheduler) repeat(op *ir.Op) error {
	if s.loop != nil {
		return fmt.Errorf("%s: a repeat inside a repeat", Position(op))
	}
	for i, a := range op.Args {
		if err := s.carry(a.Value, op.Body.Params[i]); err != nil {
			return fmt.Errorf("%s: %w", Position(op), err)
		}
	}
	s.loop = &Loop{Lo: op.Int("lo"), Hi: op.Int("hi")}
	s.graph.Schedule = append(s.graph.Schedule, Node{Loop: s.loop})
	if err := s.block(op.Body); err != nil {
		return err
	}
	for i, y := range op.Body.Yield {
		if err := s.carry(y, op.Body.Params[i]); err != nil {
			return fmt.Errorf("%s: %w", Position(op), err)
		}
	}
	s.loop = nil
	for _, r := range op.Results {
		s.l.keep(r)
	}
	return nil
}

// carry copies a value to the place of a carried one, unless they share it.
func (s *scheduler) carry(from, to *ir.Value) error {
	s.l.keep(to)
	have, ok := s.l.places[from]
	if !ok {
		return fmt.Errorf("%s is carried, but no region computes it", from)
	}
	if have.Buffer == nil || have.Buffer != s.l.places[to].Buffer {
		s.copy("carry_"+to.Name, fmt.Sprintf("Carry %s to %s", from, to), from, s.l.places[to])
	}
	return nil
}

// outputs copies what the graph yields and no region writes to the caller.
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
		s.copy("output_"+y.Name, fmt.Sprintf("Output %s", y), y, to)
	}
	return nil
}

func (s *scheduler) copy(name, doc string, from *ir.Value, to Place) {
	s.add(&Region{Name: name, Doc: doc, Role: from.Role(), Work: &Copy{From: s.l.places[from], To: to, Value: from}})
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
