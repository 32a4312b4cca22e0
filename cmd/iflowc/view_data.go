package main

import (
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

// viewData is the data of the report, as the page's script reads it.
type viewData struct {
	Name     string       `json:"name"`
	Compiler string       `json:"compiler"`
	Spec     string       `json:"spec"`
	Devices  string       `json:"devices,omitempty"`
	Origin   string       `json:"origin"`          // of the measurements
	Ranks    []viewRank   `json:"ranks,omitempty"` // of a partitioned model; all else is of one of them
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

// A viewGraph is one graph of the module, as boxes.
type viewGraph struct {
	Name string   `json:"name"`
	Ops  []viewOp `json:"ops"`
}

// A viewOp is a box: an op, or a repeat or region with boxes in it.
type viewOp struct {
	Op      string   `json:"op"`
	Results []string `json:"results"`
	Type    string   `json:"type,omitempty"`
	Args    []string `json:"args"`             // values with their sigils
	Line    int      `json:"line"`             // in the last stage's text, from 1 on
	Region  int      `json:"region"`           // in Regions; -1: none of its own
	Rounds  int      `json:"rounds,omitempty"` // of a repeat
	Params  []string `json:"params,omitempty"`
	Body    []viewOp `json:"body,omitempty"`
}

type viewWeight struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	Count     int    `json:"count"`
	Transform string `json:"transform"`
	Bytes     int64  `json:"bytes"` // of all, packed; 0: not read by the step
}

type viewState struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Bytes int64  `json:"bytes"` // of a row of all elements
}

// A viewSlot is a buffer and what it holds when: steps of time are the regions
// of the schedule.
type viewSlot struct {
	Slot  int        `json:"slot"`
	Cols  int        `json:"cols"`
	Rows  string     `json:"rows"`
	Lives []viewLife `json:"lives"`
}

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

// viewOf gathers everything about a model.
func (c *viewCmd) viewOf() (*viewData, error) {
	m, err := c.open()
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
	// The last stage is read again, for its ops to know their lines.
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

// weights lists weights and states with their transforms.
func (d *viewData) weights(mod *ir.Module) {
	for _, w := range mod.Weights {
		transform := ""
		if w.Transform != nil {
			transform = w.Transform.String()
		}
		d.Weights = append(d.Weights, viewWeight{Name: w.Name, Type: w.Type.String(), Count: elements(w), Transform: transform})
	}
}

// elements is the number of elements of an array weight or state.
func elements(v *ir.Value) int {
	n := 1
	for _, r := range v.Count {
		n *= r.Len()
	}
	return n
}

// bytes adds the sizes of the packed weights and the states.
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

// matmuls adds the implementations of each matmul and their measured times.
func (d *viewData) matmuls(m *compiler.Model, cpu *codegen.CPUModel) error {
	p, origin, err := m.Measurements()
	if err != nil {
		return err
	}
	if d.Origin = origin; p == nil {
		d.Origin = "no profile of this machine: every choice is a roofline estimate; iflowc profile measures"
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

// regions cuts the step's C into its functions.
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

// kernels renders the catalog's kernels that the step calls, for the best
// instruction set of this machine.
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
