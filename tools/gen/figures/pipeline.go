package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/templates"
)

// A stage has the numbers of the module after a pass.
type stage struct {
	name, does string
	ops        int // per layer, including those inside regions
	matmuls    int // per layer
	launches   int // per layer: the ops and regions of its body
	weights    int // bytes
	rules      int // kernel rules by number of rows
	values     int // with buffers
	buffers    int
}

// stagesOf runs the pipeline and counts after each pass.
func stagesOf(m *ir.Module, cat *templates.Catalog) (stages []stage, err error) {
	q, ok := tensor.ParseDType(modelQuant)
	if !ok {
		return nil, fmt.Errorf("%s is no type", modelQuant)
	}
	env := &passes.Env{Ops: ops.Table, Kernels: cat, Types: passes.TypeRules{Default: q}}
	see := func(_ int, name string, m *ir.Module) {
		s := count(m)
		if s.name = name; name == "lower" {
			s.name, s.does = "IR", "the graph as text, weights as stored"
		} else {
			s.does = passes.Lookup(name).Brief
		}
		switch name {
		case passes.SelectKernels.Name:
			s.does += fmt.Sprintf(": %d rules", s.rules)
		case passes.PlanBuffers.Name:
			s.does += fmt.Sprintf(": %d in %d", s.values, s.buffers)
		}
		stages = append(stages, s)
	}
	return stages, passes.Run(env, m, passes.Pipeline, passes.Options{Limit: -1, Dump: see})
}

// count counts the ops of a module's first loop, the layers.
func count(m *ir.Module) (s stage) {
	g := m.Graphs[0]
	layer := g.FindOps("repeat")[0].Body
	s.launches, s.weights = len(layer.Ops), weightBytes(m)
	buffers := map[string]bool{}
	for o := range layer.All() {
		if o.Def.Name != "fuse" {
			s.ops++
		}
		if o.Def.Name == "matmul" {
			s.matmuls++
		}
	}
	for o := range g.All() {
		if a := o.Annotations.Get("kernel"); a != nil {
			s.rules += len(a.Args)
		}
		if a := o.Annotations.Get("slot"); a != nil {
			s.values += len(a.Args)
			for _, slot := range a.Args {
				buffers[slot.Val] = true
			}
		}
	}
	s.buffers = len(buffers)
	return s
}

// pipeline draws the path of a model spec through the compiler.
func pipeline() ([]byte, error) {
	m, err := readModel()
	if err != nil {
		return nil, err
	}
	cat, err := templates.Load()
	if err != nil {
		return nil, err
	}
	stages, err := stagesOf(m, cat)
	if err != nil {
		return nil, err
	}
	code, err := codegen.CPU(m, cat, modelMost)
	if err != nil {
		return nil, err
	}
	const top, step = 110.0, 42.0
	layers := m.Graphs[0].FindOps("repeat")[0]
	n := layers.Int("hi") - layers.Int("lo")
	first, last := stages[0], stages[len(stages)-1]
	desc := fmt.Sprintf("From a YAML spec to a binary, for %s with --quant %s. In each of its %d layers the passes %s turn %d ops into %d kernel calls, %d matmuls into %d, and %.0f MB of weights into %.0f MB. Code generation writes %s lines of C.",
		modelTitle, modelQuant, n, strings.Join(passes.Names(), ", "), first.ops, last.launches, first.matmuls, last.matmuls, mb(first.weights), mb(last.weights), thousands(strings.Count(code.Step, "\n")))
	p := newPicture(top+step*float64(len(stages)+3)+6, "The compiler pipeline", desc)
	p.head("From a model spec to one binary", fmt.Sprintf("%s, %d layers, --quant %s: the module after each pass. Bold numbers changed.", modelTitle, n, modelQuant))
	for i, h := range []string{"ops", "matmuls", "kernel calls"} {
		p.end(column(i), top-12, 12, "f-soft", h)
	}
	p.text(barX, top-12, 12, "f-soft", "weights, MB")
	p.middle(column(1)-16, top-32, 12, "f-soft", "in each layer")
	p.line(column(0)-26, top-26, column(2), top-26, 1, "s-border")
	p.box(0, "model.yaml", "spec: sizes and tensors from the files", "c3")
	for i, s := range stages {
		tint := "c1"
		if i == 0 {
			tint = "c3"
		}
		p.box(i+1, s.name, s.does, tint)
		p.numbers(i+1, s, stages[max(i-1, 0)], first.weights)
	}
	p.box(len(stages)+1, "codegen", fmt.Sprintf("%s lines of C, %s", thousands(strings.Count(code.Step, "\n")), plural(len(code.Kernels), "kernel file")), "c2")
	p.box(len(stages)+2, "binary", "one file, and its weights file", "c2")
	p.libraries(top+step*float64(len(stages)+1), code)
	return p.bytes(), nil
}

func mb(bytes int) float64 { return float64(bytes) / 1e6 }

// Columns of the pipeline's table.
const barX, barWidth = 618.0, 110.0

func column(i int) float64 { return 424 + 82*float64(i) }

// box draws a stage and the arrow to it.
func (p *picture) box(row int, name, does, tint string) {
	const top, step, height = 110.0, 42.0, 32.0
	y := top + step*float64(row)
	p.rect(20, y, 358, height, 6, "box")
	p.rect(20, y, 5, height, 2, "f-"+tint)
	p.text(34, y+21, 13, "f-ink mono bold", name)
	p.text(34+8.2*float64(len(name))+12, y+21, 12, "f-soft", does)
	if row > 0 {
		p.arrow(40, y-(step-height), 40, y, "soft")
	}
}

// numbers writes a stage's line of the table.
func (p *picture) numbers(row int, s, before stage, most int) {
	y := 110 + 42*float64(row)
	p.line(390, y+37, 780, y+37, 1, "s-grid")
	first := row == 1
	for i, v := range [][2]int{{s.ops, before.ops}, {s.matmuls, before.matmuls}, {s.launches, before.launches}} {
		class := "f-soft"
		if first || v[0] != v[1] {
			class = "f-ink bold"
		}
		p.end(column(i), y+21, 13, class, fmt.Sprint(v[0]))
	}
	class := "f-soft"
	if first || s.weights != before.weights {
		class = "f-ink bold"
	}
	width := barWidth * float64(s.weights) / float64(most)
	p.rect(barX, y+9, width, 14, 3, "f-c1")
	p.text(barX+width+8, y+21, 13, class, fmt.Sprintf("%.0f", mb(s.weights)))
}

// libraries describes the output of the code generator.
func (p *picture) libraries(y float64, code *codegen.CPUModel) {
	var names []string
	for _, k := range code.Kernels {
		if !slices.Contains(names, k.Op) {
			names = append(names, k.Op)
		}
	}
	var isas []string
	for _, isa := range templates.ISAs() {
		if isa.Arch != "arm64" {
			isas = append(isas, isa.Name)
		}
	}
	p.text(396, y+21, 12, "f-soft", "kernels from templates: "+strings.Join(names, ", "))
	p.text(396, y+63, 12, "f-soft", "one library each for "+strings.Join(isas, ", "))
}
