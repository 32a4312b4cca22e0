package cuda

import (
	"fmt"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A tile is how attention on tensor cores is cut: ifl_tile_shape of
// ifl_tile_rows.cuh.
type tile struct {
	rows, keys      int // query rows of a block; state rows of a stage
	threads, shared int
}

// tileOf adds up a tile's shared memory.
func tileOf(st *layout.State, rows, keys int) tile {
	rowWarps := rows / 16
	keyWarps := min(4/rowWarps, keys/16)
	d, v := layout.Round16(st.Dim), layout.Round16(st.VDim)
	stage := keys * (2*d + 2*v + 16)
	stages := 2 * stage
	if st.Elem.IsBlock() {
		stages = 2*keys*(d+v+2*((d+31)/32+(v+31)/32)) + stage
	}
	parts := 4 * keyWarps * rows * (2 + v)
	fixed := 2*rows*(2*d+16) + 12*rows + 16*keys + 8*rows + 16
	return tile{rows: rows, keys: keys, threads: 32 * rowWarps * keyWarps, shared: fixed + max(stages, parts)}
}

// tilesFor are the tiles in which tensor cores attend over a state: a small one
// for a few query rows and a large one. There are none for f32 and for widths
// that do not fit into registers and shared memory.
func (e *emitter) tilesFor(st *layout.State) []tile {
	const widest = 256
	if !e.cat.Kernel("attention_tiles").Takes(st.Elem) || st.VDim > widest {
		return nil
	}
	var out []tile
	for _, sizes := range [][]int{{16}, {64, 32}} {
		for _, t := range tileChoices(st, sizes) {
			if st.VDim > 128 && t.rows == 64 && t.keys == 64 {
				continue // a warp with scores of 64 keys beside sums so wide spills
			}
			if t.shared <= maxShared {
				out = append(out, t)
				break
			}
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// A ScoreRange is what calibration found rows' largest attention scores between,
// times log₂e; nil: nothing.
type ScoreRange struct {
	Lo, Hi float64
	Always bool // also where the range is too wide
}

// constant is what a decoding step's softmax takes weights relative to, in place
// of each row's largest score; false: it had better not. Weights of f16 have
// exponents up to 15 and shall add up to 2⁻⁴; ifl_tile_rows.cuh has both numbers.
func (r *ScoreRange) constant(elem tensor.DType) (float64, bool) {
	most, least := 15.0, -4.0
	if elem == tensor.BF16 {
		most, least = 60, -59
	}
	const margin = 1 // on either side, for other texts
	if r == nil || r.Hi-r.Lo > most-least-2*margin && !r.Always {
		return 0, false
	}
	return (r.Lo+r.Hi)/2 - (most+least)/2, true
}

// Unified says whether attention over keys and values of some type takes weights
// relative to one constant.
func (r *ScoreRange) Unified(elem tensor.DType) bool {
	_, ok := r.constant(elem)
	return ok
}

// tileChoices are tiles of some rows, the best first.
func tileChoices(st *layout.State, rows []int) (out []tile) {
	for _, r := range rows {
		for _, keys := range []int{64, 32, 16} {
			out = append(out, tileOf(st, r, keys))
		}
	}
	return out
}

// tiledAttention emits the kernels on tensor cores: the small tile where a
// sequence has so few query rows that the large one would be less than half
// full.
func (u *unit) tiledAttention(s *schedule, a *layout.Attention, tiles []tile, holes map[string]any) error {
	u.include("ifl_tiles.cuh")
	group, vdim := a.Heads/a.KVHeads, a.State.VDim
	most := max(tiles[1].rows/2/group, 1) // tokens of a sequence for the small tile
	phi, unified := u.e.scores.constant(a.State.Elem)
	for i, t := range tiles {
		holes["Rows"], holes["Keys"], holes["Unified"], holes["Phi"] = t.rows, t.keys, false, "0.0f"
		if unified && i == 0 {
			holes["Unified"], holes["Phi"] = true, ctext.Float(phi)
		}
		holes["Blocks"] = 0
		if small := t.rows == 16; !small && vdim <= 64 || small && vdim > 64 && vdim <= 96 {
			holes["Blocks"] = 3 // told nothing, ptxas spills to make room for a fourth
		}
		k, err := u.kernel("attention_tiles", fmt.Sprintf("%s_%d", u.name, t.rows), t.threads, t.shared, holes)
		if err != nil {
			return err
		}
		blocks := manifest.CUDADim{N: 1, Rows: "tokens", Times: group, Per: t.rows, Ragged: true}
		l := s.launch(k, blocksOf(a.KVHeads), blocks, splitsOf(a.KVHeads, blocks))
		l.Rows, l.Each = "tokens", true
		if l.To = most; i > 0 {
			l.From, l.To = most+1, 0
		}
		u.e.attends(manifest.CUDAAttention{Counters: a.Heads, Blocks: a.KVHeads, Floats: t.rows * (2 + layout.Round16(vdim))})
	}
	return nil
}
