// Package layout plans the step of a module for every target: where weights,
// states and values lie, and which regions compute them in which order. It
// writes no source text; packages cpu and cuda each emit C from one Layout.
//
// A [Layout] is built once from a module and then only read:
//
//   - Weights, Packed: each weight's place in the packed file, in the order in
//     which a step reads them.
//   - States: the paged records that sequences keep between steps.
//   - Buffers: memory for values that outlive their region. Values whose lives
//     do not overlap share one, as the module's !slot annotations say.
//   - Graphs: for each graph its inputs, its outputs among the arrays of a
//     step, and its schedule: regions and loops over regions.
//
// A [Region] is what one function of the step computes. Its Work says what kind
// of region it is and holds all that a target has to know as data, so that an
// emitter never looks up an attribute or repeats a check.
//
// A new kind of memory (a fixed-size state of a sequence, an adapter for each
// row) is a new list here, and a new kind of region a new Work. An output that
// is not a row of floats is one more field of [Place].
package layout

import (
	"fmt"

	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// PageRows is the number of rows of a state in one page.
const PageRows = 64

// MaxExperts is how many experts a mixture may have.
const MaxExperts = 1024

// A Layout is the plan of one module's step.
type Layout struct {
	Module  *ir.Module
	Context int // most rows of a sequence

	Weights map[*ir.Value]*Weight
	Packed  []manifest.Weight // what the weights file holds, in order
	Pack    []pack.Item       // what each of Packed is made of
	Params  int64             // numbers in it
	States  []*State          // in the order of the module
	Buffers []*Buffer
	Graphs  []*Graph
	Regions []*Region // of all graphs, by number

	states  map[*ir.Value]*State
	buffers map[*ir.Value]*Buffer // of values that may outlive their region
	places  map[*ir.Value]Place
	symbols symbols
}

// New plans a module. context is the most rows that a sequence may have. An
// error names the op or the state that no target can compute.
func New(m *ir.Module, context int) (*Layout, error) {
	l := &Layout{
		Module: m, Context: context, Weights: map[*ir.Value]*Weight{}, states: map[*ir.Value]*State{},
		buffers: map[*ir.Value]*Buffer{}, places: map[*ir.Value]Place{}, symbols: symbols{},
	}
	for _, gr := range m.Graphs {
		if err := l.planWeights(gr.Body); err != nil {
			return nil, err
		}
	}
	l.placeWeights()
	if err := l.placeStates(); err != nil {
		return nil, err
	}
	for i, gr := range m.Graphs {
		if err := l.addGraph(i, gr); err != nil {
			return nil, fmt.Errorf("%w (graph %s)", err, gr.Name)
		}
	}
	return l, nil
}

// StateBytes is the size of one page of every element of every state.
func (l *Layout) StateBytes() int64 {
	n := int64(0)
	for _, s := range l.States {
		n += s.Page * int64(s.Count)
	}
	return n
}

// State is where the state of an argument lies.
func (l *Layout) State(v *ir.Value) *State { return l.states[v] }

// Crosses says whether the module has attention over another sequence's state.
func (l *Layout) Crosses() bool { return l.CrossEntry() >= 0 }

// CrossEntry is the number of the graph whose attention reads the state of a
// source sequence, or −1.
func (l *Layout) CrossEntry() int {
	for i, gr := range l.Module.Graphs {
		for _, op := range gr.FindOps("attention") {
			if op.Bool("cross") {
				return i
			}
		}
	}
	return -1
}

// Position is the source position of an op, for errors.
func Position(op *ir.Op) string {
	if op.Pos.Line == 0 {
		return op.Def.Name
	}
	return fmt.Sprintf("%s:%d:%d: %s", op.Pos.File, op.Pos.Line, op.Pos.Col, op.Def.Name)
}

// Round16 is n rounded up to whole vectors of 16 numbers.
func Round16(n int) int { return (n + 15) &^ 15 }
