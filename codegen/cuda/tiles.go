package cuda

import (
	"fmt"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A tile is the tile shape of attention on tensor cores: ifl_tile_shape of
// ifl_tile_rows.cuh.
type tile struct {
	rows, keys      int // query rows per block; KV cache rows per stage
	threads, shared int
}

// tileOf returns a tile with the size of its shared memory.
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

// tilesFor returns the tiles for attention on tensor cores over a KV cache: a small
// one for few query rows and a large one. It returns none for f32 and for heads too
// wide for registers and shared memory.
func (e *emitter) tilesFor(st *layout.State) []tile {
	const widest = 256
	if !e.cat.Kernel("attention_tiles").Takes(st.Elem) || st.VDim > widest {
		return nil
	}
	var out []tile
	for _, sizes := range [][]int{{16}, {64, 32}} {
		for _, t := range tileChoices(st, sizes) {
			if st.VDim > 128 && t.rows == 64 && t.keys == 64 {
				continue // scores of 64 keys and such wide accumulators spill registers
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

// A ScoreRange is the range of the rows' maximum attention scores during calibration,
// times log₂e; nil: not calibrated.
type ScoreRange struct {
	Lo, Hi float64
	Always bool // use the unified maximum even if the range is too wide
}

// constant returns the unified maximum that softmax of a decode step uses instead of
// each row's maximum score; false if the range is too wide. f16 probabilities have
// exponents up to 15 and a sum of at least 2⁻⁴, as in ifl_tile_rows.cuh.
func (r *ScoreRange) constant(elem tensor.DType) (float64, bool) {
	most, least := 15.0, -4.0
	if elem == tensor.BF16 {
		most, least = 60, -59
	}
	const margin = 1 // on both sides, for texts beyond the calibration set
	if r == nil || r.Hi-r.Lo > most-least-2*margin && !r.Always {
		return 0, false
	}
	return (r.Lo+r.Hi)/2 - (most+least)/2, true
}

// Unified reports whether attention over a KV cache of some type uses the unified
// maximum.
func (r *ScoreRange) Unified(elem tensor.DType) bool {
	_, ok := r.constant(elem)
	return ok
}

// tileChoices returns the tiles for a number of rows, the best first.
func tileChoices(st *layout.State, rows []int) (out []tile) {
	for _, r := range rows {
		for _, keys := range []int{64, 32, 16} {
			out = append(out, tileOf(st, r, keys))
		}
	}
	return out
}

// tiledAttention emits the kernels on tensor cores. The small tile is used if the
// query rows of a sequence fill less than half of the large one.
func (u *unit) tiledAttention(s *schedule, a *layout.Attention, tiles []tile, holes map[string]any) error {
	u.include("ifl_tiles.cuh")
	group, vdim := a.Heads/a.KVHeads, a.State.VDim
	most := max(tiles[1].rows/2/group, 1) // maximum tokens per sequence for the small tile
	phi, unified := u.e.scores.constant(a.State.Elem)
	for i, t := range tiles {
		holes["Rows"], holes["Keys"], holes["Unified"], holes["Phi"] = t.rows, t.keys, false, "0.0f"
		if unified && i == 0 {
			holes["Unified"], holes["Phi"] = true, ctext.Float(phi)
		}
		holes["Blocks"] = 0
		if small := t.rows == 16; !small && vdim <= 64 || small && vdim > 64 && vdim <= 96 {
			holes["Blocks"] = 3 // without this, ptxas spills registers to fit a fourth block
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
