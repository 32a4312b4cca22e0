// Package cpu emits the step of a model as C for CPUs.
//
// The step is one translation unit that is the same for every instruction set; only
// the compiler flags differ. Each region of the layout is a C function that all
// threads run. The code that does not depend on the model is in the headers
// ifl_region.h and ifl_main.h of package templates.
package cpu

import (
	"fmt"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/templates"
)

// A Kernel names a kernel of the catalog for one type: one translation unit.
type Kernel struct {
	*templates.Kernel
	Type tensor.DType
}

// A Model is the code of a module for CPUs.
type Model struct {
	Step     string   // step.c
	Kernels  []Kernel // kernels that the step calls, in order of first use
	Manifest manifest.Manifest
	Pack     []pack.Item // sources of the manifest's weights
	Regions  int         // regions in the body of the longest loop
	Hessians int64       // floats of the Hessians that calibration collects

	// Traffic is the communication volume of each graph of one rank of a partitioned
	// model; nil if the model is not partitioned.
	Traffic []manifest.Traffic

	Sites []layout.Site // for adapters; the compiler knows the stored matrices and adds them to the manifest

	buffers []*layout.Buffer
}

// Emit returns the step of a module and sets the parts of the manifest that depend on
// it: graphs, weights, states and matmul calls. context is the maximum number of rows
// of a sequence.
func Emit(m *ir.Module, cat *templates.Catalog, context int) (*Model, error) {
	l, err := layout.New(m, context)
	if err != nil {
		return nil, err
	}
	e := &emitter{layout: l, cat: cat, kernels: map[string]bool{}, acts: map[tensor.DType]int{}, tables: map[string]string{}, regions: ctext.NewWriter(0)}
	e.names = ctext.NewSymbols(l, e)
	e.describe()
	for _, g := range l.Graphs {
		if err := e.graph(g); err != nil {
			return nil, fmt.Errorf("%w (graph %s)", err, g.Name)
		}
	}
	e.out.Step, err = e.step()
	e.out.buffers, e.out.Hessians, e.out.Sites = l.Buffers, e.calib.hessians, l.Sites
	return &e.out, err
}

// An emitter holds the state of one call of Emit.
type emitter struct {
	layout *layout.Layout
	cat    *templates.Catalog
	names  *ctext.Symbols
	out    Model

	kernels map[string]bool   // symbols already in out.Kernels
	protos  []string          // prototypes of the called kernels
	tables  map[string]string // C text of a table of kernels → its name
	listed  []string          // definitions of the tables
	regions *ctext.Writer     // functions of the regions and graphs
	w       *ctext.Writer     // body of the current region
	need    needs
	headers []string             // headers that not every model needs
	acts    map[tensor.DType]int // packing of activations → maximum width of a row
	calib   calibrationSums
}

// needs are the maxima over all regions that determine the size of the arena.
type needs struct {
	k         int // input columns of a matmul
	group     int // columns per group of a matmul's output
	rows      int // scratch rows
	row       int // columns of the widest
	adapters  int // sites of a weight
	sparse    int // columns of a matrix with sparse outliers
	attention *attentionNeeds
	cells     []string // floats of scratch of ops on fixed-size states, in C
	mixtures  []string // rows of ifl_mixtures
	ranks     int      // ranks of the TP group; 1: none
}

type attentionNeeds struct{ heads, dim, vdim int }

// describe sets the fields of the manifest that depend on the layout.
func (e *emitter) describe() {
	m := &e.out.Manifest
	m.Weights, m.Params, e.out.Pack = e.layout.Packed, e.layout.Params, e.layout.Pack
	for _, s := range e.layout.States {
		m.States = append(m.States, manifest.State{Name: s.Name, Count: s.Count, PageRows: layout.PageRows, PageBytes: s.Each, Type: s.Elem.String()})
	}
	for _, f := range e.layout.Fixed {
		m.States = append(m.States, manifest.State{Name: f.Name, Count: f.Count, CellBytes: f.Each, Type: "f32"})
	}
	for _, g := range e.layout.Graphs {
		m.Graphs = append(m.Graphs, manifest.Graph{Name: g.Name, Outputs: g.Outputs, At: g.At, Reads: g.Reads})
		for _, n := range g.Schedule {
			if n.Loop != nil {
				e.out.Regions = max(e.out.Regions, len(n.Loop.Regions))
			}
		}
	}
	for _, r := range e.layout.Regions {
		m.Regions = append(m.Regions, manifest.Region{Graph: r.Graph.Name, Name: r.Name, Doc: r.Doc, Rows: r.Role, Calls: r.Loop.Layers()})
	}
}

// use records a call of a kernel and returns its symbol.
func (e *emitter) use(k *templates.Kernel, dt tensor.DType, proto string) string {
	sym := k.Symbol(dt)
	if !e.kernels[sym] {
		e.kernels[sym] = true
		e.out.Kernels = append(e.out.Kernels, Kernel{k, dt})
		e.protos = append(e.protos, fmt.Sprintf(proto, sym))
	}
	return sym
}

// only returns the single kernel for an op and type.
func (e *emitter) only(op string, dt tensor.DType) (*templates.Kernel, error) {
	c := e.cat.Candidates(op, dt)
	if len(c) == 0 {
		return nil, fmt.Errorf("the cpu target has no kernel for %s of type %s", op, dt)
	}
	return c[0], nil
}

// uses records that a region needs some scratch rows.
func (e *emitter) uses(r *ctext.Rows) {
	e.need.rows, e.need.row = max(e.need.rows, r.Temps), max(e.need.row, r.Scratch)
}
