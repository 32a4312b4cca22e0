//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// viewData is the data of the report, in the JSON form that its script reads.
type viewData struct {
	Name     string       `json:"name"`
	Compiler string       `json:"compiler"`
	Spec     string       `json:"spec"`
	Devices  string       `json:"devices,omitempty"`
	Origin   string       `json:"origin"`          // of the measurements; why there is no code, if Regions is empty
	Ranks    []viewRank   `json:"ranks,omitempty"` // of a partitioned model; the other fields describe Rank
	Rank     int          `json:"rank,omitempty"`
	Stages   []viewStage  `json:"stages"`
	Graphs   []viewGraph  `json:"graphs"` // of the last stage
	Weights  []viewWeight `json:"weights"`
	States   []viewState  `json:"states"`
	Slots    []viewSlot   `json:"slots"`
	Regions  []viewRegion `json:"regions"`
	Kernels  []viewKernel `json:"kernels"`
	Matmuls  []viewMatmul `json:"matmuls"`
	Trace    *viewTrace   `json:"trace,omitempty"`
}

// A viewStage is the module after a pass.
type viewStage struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	IR   string `json:"ir"`
}

// A viewGraph is a graph of the module.
type viewGraph struct {
	Name string   `json:"name"`
	Ops  []viewOp `json:"ops"`
}

// A viewOp is an op. The body of a repeat or of a fused region has further ops.
type viewOp struct {
	Op      string   `json:"op"`
	Results []string `json:"results"`
	Type    string   `json:"type,omitempty"`
	Args    []string `json:"args"`             // values with their sigils
	Line    int      `json:"line"`             // in the text of the last stage, 1-based
	Region  int      `json:"region"`           // index in Regions; -1: none
	Rounds  int      `json:"rounds,omitempty"` // of a repeat
	Params  []string `json:"params,omitempty"`
	Body    []viewOp `json:"body,omitempty"`
}

type viewWeight struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	Count     int    `json:"count"`
	Transform string `json:"transform"`
	Bytes     int64  `json:"bytes"` // of all elements, packed; 0: the step does not read it
}

type viewState struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Bytes int64  `json:"bytes"` // per row, of all elements
}

// A viewSlot is a buffer with the values that it holds.
type viewSlot struct {
	Slot  int        `json:"slot"`
	Cols  int        `json:"cols"`
	Rows  string     `json:"rows"`
	Lives []viewLife `json:"lives"`
}

// A viewLife is the lifetime of a value, as indices in Regions: from the region
// that computes it to the last region that reads it.
type viewLife struct {
	Value string `json:"value"`
	From  int    `json:"from"`
	To    int    `json:"to"`
}

type viewRegion struct {
	manifest.Region
	Function string `json:"function"`
	Source   string `json:"source"`
}

type viewKernel struct {
	Symbol string `json:"symbol"`
	ISA    string `json:"isa"`
	Doc    string `json:"doc"`
	Source string `json:"source"`
}

type viewMatmul struct {
	manifest.Matmul
	Chosen   string                `json:"chosen"`
	Measured *dispatch.Measurement `json:"measured,omitempty"`
}

// viewOf compiles the model and returns the data of its report.
func (c *viewCmd) viewOf(ctx context.Context) (*viewData, error) {
	m, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	d := &viewData{Name: m.Spec.Name, Compiler: compiler.Version(), Devices: m.Spec.Devices, Rank: c.Rank}
	mod, cpu, err := d.program(c, m)
	if err != nil {
		return nil, err
	}
	yaml, err := m.Spec.YAML()
	if err != nil {
		return nil, err
	}
	d.Spec = string(yaml)
	d.weights(mod)
	// Parse the printed last stage, so that its ops have line numbers.
	last, err := ir.Parse("", []byte(d.Stages[len(d.Stages)-1].IR), ops.Table)
	if err != nil {
		return nil, fmt.Errorf("bug: the printed IR cannot be read: %w", err)
	}
	if cpu == nil {
		d.graphs(last, nil)
		return d, nil
	}
	d.bytes(&cpu.Manifest)
	d.graphs(last, cpu.Manifest.Regions)
	d.regions(cpu)
	if err := d.kernels(cpu); err != nil {
		return nil, err
	}
	return d, d.matmuls(m, cpu)
}

// weights lists the weights with their transforms.
func (d *viewData) weights(mod *ir.Module) {
	for _, w := range mod.Weights {
		transform := ""
		if w.Transform != nil {
			transform = w.Transform.String()
		}
		d.Weights = append(d.Weights, viewWeight{Name: w.Name, Type: w.Type.String(), Count: elements(w), Transform: transform})
	}
}

// elements returns the number of elements of an array weight or state; 1 for
// others.
func elements(v *ir.Value) int {
	n := 1
	for _, r := range v.Count {
		n *= r.Len()
	}
	return n
}

// bytes adds the sizes of the packed weights and of the states.
func (d *viewData) bytes(m *manifest.Manifest) {
	for _, w := range m.Weights {
		if i := slices.IndexFunc(d.Weights, func(v viewWeight) bool { return v.Name == w.Name }); i >= 0 {
			d.Weights[i].Bytes += w.Bytes
		}
	}
	for _, s := range m.States {
		d.States = append(d.States, viewState{s.Name, s.Count, s.PageBytes * int64(s.Count) / int64(max(s.PageRows, 1))})
	}
}

// matmuls adds the implementations of each matmul and their measurements.
func (d *viewData) matmuls(m *compiler.Model, cpu *codegen.CPUModel) error {
	p, origin, err := m.Measurements()
	if err != nil {
		return err
	}
	if d.Origin = origin; p == nil {
		d.Origin = "no profile of this machine, so kernels are chosen by roofline estimates; iflowc profile measures them"
	}
	table, err := dispatch.Table(cpu.Manifest.Matmuls, p)
	if err != nil {
		return usageError{err}
	}
	for i, s := range cpu.Manifest.Matmuls {
		v := viewMatmul{Matmul: s, Chosen: dispatch.Describe(s, table[i*dispatch.Rows:][:dispatch.Rows])}
		if shape := measuredShape(p, s); shape != nil {
			v.Measured = shape.Measured
		}
		d.Matmuls = append(d.Matmuls, v)
	}
	return nil
}

// regions splits the C code of the step into its functions.
func (d *viewData) regions(cpu *codegen.CPUModel) {
	for i, r := range cpu.Manifest.Regions {
		v := viewRegion{Region: r, Function: fmt.Sprintf("r%d_", i)}
		start := strings.Index(cpu.Step, "static void "+v.Function)
		if start >= 0 {
			head := cpu.Step[start+len("static void "):]
			v.Function = head[:strings.IndexByte(head, '(')]
			end := strings.Index(cpu.Step[start:], "\n}\n")
			v.Source = cpu.Step[start : start+end+3]
		}
		d.Regions = append(d.Regions, v)
	}
}

// kernels renders the kernels that the step calls, for the best instruction set
// of this machine.
func (d *viewData) kernels(cpu *codegen.CPUModel) error {
	isa, err := compiler.ISAHere("")
	if err != nil {
		return err
	}
	for _, k := range cpu.Kernels {
		src, err := k.Source(k.Type, isa.Name)
		if err != nil {
			return err
		}
		d.Kernels = append(d.Kernels, viewKernel{k.Symbol(k.Type), isa.Name, k.Doc, src})
	}
	return nil
}
