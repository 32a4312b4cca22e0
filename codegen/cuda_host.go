package codegen

// tables marks the weights that nothing but embed reads: the runtime may leave
// those that stand first in the host's memory, and only the rows travel.
func (g *cudaGen) tables() {
	read := map[*packed]bool{}
	for _, gr := range g.mod.Graphs {
		for op := range gr.Body.All() {
			for _, a := range op.Args {
				if p := g.weights[a.Value]; p != nil {
					was, seen := read[p]
					read[p] = op.Def.Name == "embed" && (was || !seen)
				}
			}
		}
	}
	at := int64(0)
	for _, w := range g.out.Manifest.Weights {
		p := g.weights[g.mod.Weight(w.Name)]
		p.table = read[p]
		if p.table && w.Offset == at {
			at += w.Bytes
			g.model.Plan.HostBytes = at
		}
	}
}
