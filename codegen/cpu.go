package codegen

import (
	"fmt"

	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/templates"
)

// A Kernel names a kernel of the catalogue at one type: one translation unit.
type Kernel struct {
	*templates.Kernel
	Type tensor.DType
}

// A CPUModel is a module spelled for the CPU target. The step function is the
// same text for every instruction set; headers and flags make the difference.
type CPUModel struct {
	Step     string   // step.c
	Kernels  []Kernel // the translation units it calls, in order of first use
	Manifest manifest.Manifest
	Pack     []pack.Item // the manifest's weights, and what they are made of
	Regions  int         // fused regions in the body of the longest repeat

	// What each graph of one rank of a partitioned model tells the others; nil for
	// a whole model.
	Traffic []manifest.Traffic

	slots []*slot // buffers of values
}

// CPU emits the step function of a module and the parts of the manifest that
// follow from it: graphs, weights, states and dispatch sites.
// context is the most rows a sequence may have.
func CPU(m *ir.Module, cat *templates.Catalog, context int) (*CPUModel, error) {
	g := &cpuGen{mod: m, cat: cat, spell: &cSpelling, context: context, w: &cWriter{}, kernels: map[string]bool{}, slots: map[*ir.Value]*slot{}}
	if err := g.plan(); err != nil {
		return nil, err
	}
	body := &cWriter{}
	g.w = body
	for i := range m.Graphs {
		if err := g.graph(i); err != nil {
			return nil, fmt.Errorf("%s: graph %s: %w", m.Name, m.Graphs[i].Name, err)
		}
	}
	g.w = &cWriter{}
	g.prelude()
	g.w.b.WriteString(body.b.String())
	g.entry()
	g.out.Step, g.out.slots = g.w.b.String(), g.list
	return &g.out, nil
}

// A cpuGen carries the state of one emission.
type cpuGen struct {
	mod *ir.Module
	cat *templates.Catalog

	spell   *spelling // how row ops are written
	context int       // most rows of a sequence
	outer   *cWriter  // what w was before the body of the current region
	w       *cWriter
	out     CPUModel

	kernels map[string]bool // symbols already in out.Kernels
	protos  []string        // prototypes of the kernels called
	weights map[*ir.Value]*packed
	states  map[*ir.Value]*state
	slots   map[*ir.Value]*slot
	list    []*slot // every slot, by number
	need    sizes
	region  int // number of the next region function
	graphAt *ir.Graph
}

// sizes are the maxima over all regions that the arena must provide for.
type sizes struct {
	k       int            // columns of an activation row
	seen    int64          // sums that calibration keeps for a thread
	moments int64          // products of columns that calibration keeps for the team
	moment  int            // floats of one of the rows that they are made of
	act     map[string]int // kind of packed activations → its largest K
	yCols   int            // columns of one group of a root's output
	row     int            // columns of a row in scratch
	rows    int            // rows in scratch
	heads   int            // attention: query heads
	dim     int            // attention: width of a key
	vdim    int            // attention: width of a value
	attends bool
	experts []string // C expressions of the bytes each mixture of experts needs
	cross   bool     // attention reads a source state
	comm    bool     // a rank of several
	members int      // of its tensor group
	deltas  int      // columns of the widest matrix with deltas
}

// use notes that the step calls a kernel and gives its symbol.
func (g *cpuGen) use(k *templates.Kernel, dt tensor.DType, proto string) string {
	sym := k.Symbol(dt)
	if !g.kernels[sym] {
		g.kernels[sym] = true
		g.out.Kernels = append(g.out.Kernels, Kernel{k, dt})
		g.protos = append(g.protos, fmt.Sprintf(proto, sym))
	}
	return sym
}

// only is the single kernel for an op and type.
func (g *cpuGen) only(op string, dt tensor.DType) (*templates.Kernel, error) {
	c := g.cat.Candidates(op, dt)
	if len(c) == 0 {
		return nil, fmt.Errorf("the cpu target has no kernel for %s of type %s", op, dt)
	}
	return c[0], nil
}
