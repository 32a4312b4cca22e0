package codegen

import (
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// deltasOf is how many entries of a weight its recipe keeps aside, at most: of
// its own, or of the weights that it stacks.
func (g *cpuGen) deltasOf(w *ir.Value) int {
	switch r := w.Recipe; {
	case r == nil:
		return 0
	case r.Op == "quantize_delta":
		return tensor.DeltaCount(w.Type.Shape[0].N, w.Type.Cols(), r.Nums[0])
	default:
		n := 0
		for _, name := range ir.RecipeRefs(r) {
			n += g.deltasOf(g.mod.Weight(name))
		}
		return n
	}
}

// unpack emits what keeps a tile's rows as the kernel will multiply them, for
// deltas: when all are there, since the last one completes the tile.
func (m *matmulCode) unpack() {
	if m.w.deltas == 0 {
		return
	}
	m.g.need.deltas = max(m.g.need.deltas, m.w.k)
	m.g.w.p("for (int m = 0; m < mt; m++) ifl_unpack_row(%s, tile, alone ? own->deltas : c->deltas, K, mt, m, i * tm + m, rows);", m.enum)
}

// addDeltas emits the addition of the deltas to what the kernel has written at y.
func (m *matmulCode) addDeltas(y string) {
	if m.w.deltas == 0 {
		return
	}
	m.g.w.p("ifl_add_deltas(w + INT64_C(%d), PANELS, n0 / 16, cols / 16, alone ? own->deltas : c->deltas, K, rows, %s);", m.w.panels(), y)
}
