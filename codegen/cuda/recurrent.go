package cuda

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
)

const (
	convThreads = 128
	lruThreads  = 64
	scanThreads = 128 // IFL_SCAN_THREADS
	recThreads  = 256 // IFL_RC_THREADS
	recWarps    = recThreads / 32
	recHeld     = 4 // loads of 4 numbers of the matrix that a thread holds without spilling registers
)

// recurrent emits an op on a fixed-size state.
func (e *emitter) recurrent(s *schedule, r *layout.Region, work *layout.Recurrent) error {
	u := e.unit(r.Function())
	body, err := written(1, func(w *ctext.Writer) error {
		f, err := u.names.Recurrent(w, r, work)
		if err != nil {
			return err
		}
		w.P("const ifl_%s a = {", f.Type)
		w.P(".cells = {.step = s, %s},", f.Cells)
		for _, line := range f.Fields {
			w.P("%s", line)
		}
		w.P("};")
		return nil
	})
	if err != nil {
		return err
	}
	holes := map[string]any{"Doc": r.Doc, "Count": rowCount(r.Role), "Body": body}
	switch work.Op.Def.Name {
	case "short_conv", "token_shift":
		err = u.shortConv(s, r.Role, work, holes)
	case "rg_lru":
		u.include("ifl_cells.cuh")
		err = u.perSequence(s, "rg_lru", lruThreads, 0, (work.Out.Cols+lruThreads-1)/lruThreads, holes)
	case "pool_rows":
		u.include("ifl_pooling.cuh")
		err = u.perSequence(s, "pool_rows", lruThreads, 0, (work.Out.Cols+lruThreads-1)/lruThreads, holes)
	case "selective_scan":
		err = u.selectiveScan(s, work.Op, holes)
	case "linear_recurrence":
		err = u.linearRecurrence(s, work, holes)
	}
	if err != nil {
		return err
	}
	return u.end(r.Doc)
}

// shortConv emits short_conv and token_shift; one thread per column of a token.
func (u *unit) shortConv(s *schedule, role string, work *layout.Recurrent, holes map[string]any) error {
	u.include("ifl_cells.cuh")
	holes["Taps"] = work.Taps
	k, err := u.kernel("short_conv", u.name, convThreads, 0, holes)
	if err != nil {
		return err
	}
	s.launch(k, blocksOf((work.Out.Cols+convThreads-1)/convThreads), blocksPer(role, 1))
	return nil
}

// perSequence emits a kernel with some thread blocks per sequence.
func (u *unit) perSequence(s *schedule, template string, threads, shared, blocks int, holes map[string]any) error {
	k, err := u.kernel(template, u.name, threads, shared, holes)
	if err != nil {
		return err
	}
	s.launch(k, blocksOf(blocks), blocksPer("sequences", 1))
	return nil
}

func (u *unit) selectiveScan(s *schedule, op *ir.Op, holes map[string]any) error {
	u.include("ifl_scan.cuh")
	shape := op.Args[0].State.Fields[0].Shape
	const channels = scanThreads / 4
	floats := layout.CellRows * (2*channels + 2*shape[1]) // FLOATS of ifl_scan.cuh
	holes["States"], holes["Floats"] = shape[1], floats
	return u.perSequence(s, "selective_scan", scanThreads, 4*floats, (shape[0]+channels-1)/channels, holes)
}

func (u *unit) linearRecurrence(s *schedule, work *layout.Recurrent, holes map[string]any) error {
	u.include("ifl_recurrence.cuh")
	r, decay, delta := work.Shape, work.Op.Word("decay"), work.Op.Word("delta")
	tiles := recurrenceTiles(r.Heads, r.KeyDim, layout.Round16(r.ValueDim)/16)
	groups := (layout.Round16(r.ValueDim)/16 + tiles - 1) / tiles
	floats := recurrenceFloats(layout.Round16(r.KeyDim), tiles, decay == "channel", delta)
	blocks := 2
	if r.KeyDim > recHeld*8*recWarps/tiles {
		blocks = 1 // the matrix needs more registers
	}
	for name, x := range map[string]any{
		"Heads": r.Heads, "KeyHeads": r.KeyHeads, "Dim": r.KeyDim, "VDim": r.ValueDim, "Decays": strings.ToUpper(decay), "Delta": strings.ToUpper(delta),
		"Tiles": tiles, "Groups": groups, "Floats": floats, "Blocks": blocks,
	} {
		holes[name] = x
	}
	return u.perSequence(s, "linear_recurrence", recThreads, 4*floats, r.Heads*groups, holes)
}

// recurrenceTiles returns the number of tiles of 16 columns per thread block, of all those
// of a head's matrix. With more tiles, fewer blocks compute the same coefficients. But one
// sequence should nearly fill a GPU, and a thread holds at most recHeld loads of the
// matrix.
func recurrenceTiles(heads, keyDim, all int) int {
	const blocks = 128
	tiles := 1
	for tiles < 4 && tiles < all {
		next := 2 * tiles
		if heads*((all+next-1)/next) < blocks || keyDim > recHeld*8*recWarps/next {
			break
		}
		tiles = next
	}
	return tiles
}

// recurrenceFloats returns FLOATS of ifl_recurrence.cuh: the shared memory of a thread
// block with so many tiles.
func recurrenceFloats(dim, tiles int, channel bool, delta string) int {
	const rows = layout.CellRows
	cols := 16 * tiles
	products := recWarps / tiles * rows * cols
	n := rows*dim + rows + dim*(rows+4) + dim + rows*cols + products + rows*rows + 4*rows
	if channel {
		n += rows*dim - rows
	}
	if delta != "none" {
		n += dim*(rows+4) + products + rows*rows
	}
	if delta == "vectors" {
		n += rows*dim + rows*cols + 2*rows*rows
	}
	return n
}

// cellMoves emits the kernels that copy a row of a cell, one kernel per fixed-size
// state.
func (e *emitter) cellMoves() error {
	if len(e.layout.Fixed) == 0 {
		return nil
	}
	u, s := e.unit("move_in_cells"), &schedule{}
	for _, f := range e.layout.Fixed {
		const threads = 256
		parts := (int(f.Row) + 4*threads - 1) / (4 * threads)
		k, err := u.kernel("move_in_cells", fmt.Sprintf("ifl_%s_%s", u.name, layout.CName(f.Name)), threads, 0, map[string]any{
			"Doc": "state " + f.Name, "At": f.At, "Start": f.Start, "Row": f.Row, "Parts": parts})
		if err != nil {
			return err
		}
		s.launch(k, blocksOf(f.Count*parts))
	}
	e.out.Plan.CellMoves = s.launches
	return u.end("copies rows of cells")
}
