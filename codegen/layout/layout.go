// Package layout plans the step of a module for every target: the placement of
// weights, states and values, and the regions that compute them, in order. It emits no
// source code; packages cpu and cuda each emit C from one Layout.
//
// A [Layout] is built once from a module and then only read:
//
//   - Weights, Packed: each weight's place in the packed file, in the order in
//     which a step reads them.
//   - States: the paged KV caches. Fixed: the fixed-size states.
//   - Buffers: memory for values that outlive their region. Values with disjoint
//     lifetimes share a buffer, according to the module's !slot annotations. A view
//     is a part of another value's rows.
//   - Sites: the matrices to which adapters can add.
//   - Graphs: for each graph its inputs, its outputs among the arrays of a
//     step, and its schedule: regions and loops over regions.
//
// A [Region] is the computation of one function of the step. Its Work is the kind of
// region and contains everything that an emitter needs, so that emitters neither read
// attributes nor repeat checks.
//
// To add a kind of memory, add a list to Layout. To add a kind of region, add a Work. For
// an output that is not a row of floats, add a field to [Place].
package layout

import (
	"fmt"

	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// PageRows is the number of rows of a state in one page.
const PageRows = 64

// MaxExperts is the maximum number of experts of a mixture.
const MaxExperts = 1024

// A Layout is the plan of one module's step.
type Layout struct {
	Module  *ir.Module
	Context int // maximum number of rows of a sequence

	Weights map[*ir.Value]*Weight
	Packed  []manifest.Weight // contents of the weights file, in order
	Pack    []pack.Item       // source of each element of Packed
	Params  int64             // number of parameters
	States  []*State          // in the order of the module
	Fixed   []*Fixed          // in the order of the module
	Buffers []*Buffer
	Graphs  []*Graph
	Regions []*Region // of all graphs, by number
	Sites   []Site    // for adapters

	states  map[*ir.Value]*State
	fixed   map[*ir.Value]*Fixed
	buffers map[*ir.Value]*Buffer // of values that may outlive their region
	places  map[*ir.Value]Place
	sites   map[*ir.Value]int // site of a weight's first layer
	symbols symbols
}

// New plans a module. context is the maximum number of rows of a sequence. An error
// names an op or a state that no target supports.
func New(m *ir.Module, context int) (*Layout, error) {
	l := &Layout{
		Module: m, Context: context, Weights: map[*ir.Value]*Weight{}, states: map[*ir.Value]*State{}, fixed: map[*ir.Value]*Fixed{},
		buffers: map[*ir.Value]*Buffer{}, places: map[*ir.Value]Place{}, symbols: symbols{}, sites: map[*ir.Value]int{},
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

// StateBytes returns the total size of one page of every element of every state.
func (l *Layout) StateBytes() int64 {
	n := int64(0)
	for _, s := range l.States {
		n += s.Bytes()
	}
	return n
}

// State returns the placement of an argument's state.
func (l *Layout) State(v *ir.Value) *State { return l.states[v] }

// Crosses reports whether the module has cross-attention.
func (l *Layout) Crosses() bool { return l.CrossEntry() >= 0 }

// CrossEntry returns the index of the graph with cross-attention, or −1.
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

// CellGraphs returns the bits of the graphs whose steps need cells: all but those that
// follow another one.
func (l *Layout) CellGraphs() int {
	n := 0
	for i, g := range l.Graphs {
		if g.At == 0 {
			n |= 1 << i
		}
	}
	return n
}

// Position returns the source position of an op, for errors.
func Position(op *ir.Op) string {
	if op.Pos.Line == 0 {
		return op.Def.Name
	}
	return fmt.Sprintf("%s:%d:%d: %s", op.Pos.File, op.Pos.Line, op.Pos.Col, op.Def.Name)
}

// Round16 returns n rounded up to a multiple of 16.
func Round16(n int) int { return (n + 15) &^ 15 }
