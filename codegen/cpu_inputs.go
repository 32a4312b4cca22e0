package codegen

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// rowsOf is the C expression of the array that holds all rows of a value: its
// buffer, or of an input the results of an earlier step of another graph.
func (g *cpuGen) rowsOf(x *ir.Value) (string, error) {
	if x.Kind != ir.Input {
		if x.Type.Elem != tensor.F32 || g.slots[x] == nil {
			return "", fmt.Errorf("rows of a value without a buffer")
		}
		return g.slotPtr(x), nil
	}
	for i, y := range g.earlier(g.graphAt) {
		if y.OutputName() != x.Name {
			continue
		}
		if y.Type.Elem != x.Type.Elem || y.Type.Cols() != x.Type.Cols() {
			return "", fmt.Errorf("input %s is %s but another graph yields %s", x, x.Type, y.Type)
		}
		return fmt.Sprintf("s->out[%d]", i), nil
	}
	return "", fmt.Errorf("no other graph yields what input %s is", x)
}

// earlier lists the results of the graph some of whose results a graph reads,
// from a step before. Where no other graph of the program yields anything they
// are those of another rank, and all of them are inputs.
func (g *cpuGen) earlier(gr *ir.Graph) []*ir.Value {
	var foreign []*ir.Value
	alone := len(g.mod.Graphs) > 1
	for _, in := range gr.Inputs {
		if in.Type.Elem == tensor.I32 {
			continue
		}
		foreign = append(foreign, in)
		for _, other := range g.mod.Graphs {
			if other != gr && other.Output(in.Name) >= 0 {
				return other.Body.Yield
			}
			alone = alone && (other == gr || len(other.Body.Yield) == 0)
		}
	}
	if !alone {
		return nil
	}
	return foreign
}

// outputsAt is the place of a graph's first result among the arrays of a step:
// behind those of the graph whose results it reads, which stay.
func (g *cpuGen) outputsAt(gr *ir.Graph) int { return len(g.earlier(gr)) }

// reads are the results of an earlier step that the ops of a graph read.
func (g *cpuGen) reads(gr *ir.Graph) (list []manifest.Read) {
	for i, y := range g.earlier(gr) {
		in := gr.Input(y.OutputName())
		if in == nil || !usesOf(gr, in) {
			continue
		}
		list = append(list, manifest.Read{At: i, Cols: round16(in.Type.Cols())})
	}
	return list
}

// usesOf says whether an op of a graph reads a value.
func usesOf(gr *ir.Graph, v *ir.Value) bool {
	for op := range gr.Body.All() {
		for _, a := range op.Args {
			if a.Value == v {
				return true
			}
		}
	}
	return false
}
