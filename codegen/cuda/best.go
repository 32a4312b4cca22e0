package cuda

import (
	"slices"

	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// bestLoads is the number of 16-byte loads of a thread of the kernel best. A block then
// reads 32 KB with all loads in flight, about the bandwidth of an SM times the latency
// of L2 (64 bytes per clock, 300 to 600 clocks).
const bestLoads = 8

// best emits the kernel that finds the argmax of each row of a graph's logits, or as many
// of the largest as the row's request samples from, if the graph has logits.
func (e *emitter) best(s *schedule, g *layout.Graph) error {
	i := slices.IndexFunc(g.Outputs, func(o manifest.Output) bool { return o.Name == "logits" && o.Rows == "out_rows" })
	e.out.Plan.Best = append(e.out.Plan.Best, 0)
	if i < 0 {
		return nil
	}
	o := g.Outputs[i]
	u := e.unit("best_" + layout.CName(g.Name))
	u.include("ifl_top.cuh")
	k, err := u.kernel("best", u.name, rowThreads, 0, map[string]any{
		"Doc": "largest of " + o.Name, "Cols": o.Cols, "Used": o.Used, "Loads": bestLoads, "Output": g.At + i})
	if err != nil {
		return err
	}
	const cols = rowThreads * bestLoads * 4
	parts := (o.Used + cols - 1) / cols
	s.launch(k, blocksOf(parts), blocksPer(o.Rows, 1))
	e.out.Plan.Best[g.Entry] = parts
	return u.end("finds the largest of each row of logits")
}
