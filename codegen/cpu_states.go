package codegen

import (
	"fmt"

	"github.com/iflowc/iflowc/ir/tensor"
)

// bytes are those of an element of a state; 0: q8_b32t2, whose blocks have scales.
func (s state) bytes() int {
	if s.elem == tensor.Q8B32T2 {
		return 0
	}
	return s.elem.BlockBytes()
}

// moves are the statements that copy a row of every element of every state.
func (g *cpuGen) moves() (list []string) {
	for i, v := range g.mod.States {
		s := g.states[v]
		list = append(list, fmt.Sprintf("for (int64_t e = 0; e < %d; e++, base += INT64_C(%d) * c->pages)\n"+
			"    ifl_kv_move(base + to_page * INT64_C(%d), to, base + from_page * INT64_C(%d), from, %d, %d, %d, %d);",
			g.out.Manifest.States[i].Count, s.page, s.page, s.page, s.kvHeads, s.dim, s.vdim, s.bytes()))
	}
	return list
}

// crossEntry is the graph that reads source states from outside.
func (g *cpuGen) crossEntry() int {
	for i, gr := range g.mod.Graphs {
		for _, op := range gr.FindOps("attention") {
			if op.Bool("cross") {
				return i
			}
		}
	}
	return -1
}
