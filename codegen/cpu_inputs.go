package codegen

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
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
	for _, gr := range g.mod.Graphs {
		for i, y := range gr.Body.Yield {
			if gr == g.graphAt || suffix.ReplaceAllString(y.Name, "") != x.Name {
				continue
			}
			if y.Type.Elem != x.Type.Elem || y.Type.Cols() != x.Type.Cols() {
				return "", fmt.Errorf("input %s is %s but graph %s yields %s", x, x.Type, gr.Name, y.Type)
			}
			return fmt.Sprintf("s->out[%d]", i), nil
		}
	}
	return "", fmt.Errorf("no other graph yields what input %s is", x)
}

// outputsAt is the place of a graph's first result among the arrays of a step:
// behind the results of the graph whose results it reads, which stay.
func (g *cpuGen) outputsAt(gr *ir.Graph) int {
	for _, in := range gr.Inputs {
		if in.Type.Elem == tensor.I32 {
			continue
		}
		for _, other := range g.mod.Graphs {
			for _, y := range other.Body.Yield {
				if other != gr && suffix.ReplaceAllString(y.Name, "") == in.Name {
					return len(other.Body.Yield)
				}
			}
		}
	}
	return 0
}
