//go:build unix

package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// A recurrence is a device with a model whose state is a hash of all tokens so far. A
// cell holds the hash before its rows, and the token of each row. The step computes as
// the kernels do, from the cells alone; a model with pages also checks that these give
// the same hash. A step that reads what no step has written is an error.
type recurrence struct {
	paged    bool
	inFlight int
	r        *rand.Rand // nil: no step fails
	steps    int
	most     int // the longest list of cells
}

// recurrenceModel is the manifest of the model.
func recurrenceModel(paged bool) *manifest.Manifest {
	m := &manifest.Manifest{
		Format: manifest.Format, Name: "recurrence", Network: "decoder_only", Vocab: 100, Context: 600, BOS: 1, Pad: -1,
		Graphs: []manifest.Graph{{Name: "decode", Outputs: []manifest.Output{{Name: "logits", Rows: "out_rows", Cols: 16, Used: 2}}}},
		States: []manifest.State{{Name: "memory", Count: 3, CellBytes: 1024, Type: "f32"}},
	}
	if paged {
		m.States = append(m.States, manifest.State{Name: "kv", Count: 2, PageRows: 64, PageBytes: 256, Type: "f16"})
	}
	return m
}

// step returns the hash after one more token.
func next(h uint64, token int32) uint64 {
	h = (h ^ uint64(token+1)) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

func hashOf(tokens []int32) (h uint64) {
	for _, t := range tokens {
		h = next(h, t)
	}
	return h
}

// isHash reports whether a row of logits is that of a hash.
func isHash(row []float32, h uint64) bool {
	return row[0] == float32(h>>40) && row[1] == float32(h>>16&0xffffff)
}

func (d *recurrence) Info() device.Info {
	info := device.Info{Name: "recurrence", InFlight: max(1, d.inFlight), CellBytes: 3 * 1024}
	if d.paged {
		info.PageBytes = 512
	}
	return info
}

func (d *recurrence) ScratchBytes(*device.Config) int64                         { return 0 }
func (d *recurrence) Peak(device.Arithmetic, int, time.Duration) (gops float64) { return 0 }

func (d *recurrence) Start(cfg *device.Config) (device.Context, error) {
	return &recurring{recurrence: d, cfg: *cfg, cells: make([]cell, cfg.Cells), pages: make([][64]int32, cfg.Pages)}, cfg.Check()
}

// A cell is a cell of the fake model. Tokens are stored plus one; 0: none.
type cell struct {
	start   uint64
	started bool
	rows    [16]int32
}

type recurring struct {
	device.Uninstrumented
	device.NoAdapters
	*recurrence
	cfg   device.Config
	cells []cell
	pages [][64]int32
}

func (c *recurring) CopyPage(to, from int32) { c.pages[to] = c.pages[from] }
func (c *recurring) MoveRow(to, from device.Row) {
	c.pages[to.Page][to.Row] = c.pages[from.Page][from.Row]
}
func (c *recurring) CopyCell(to, from int32)       { c.cells[to] = c.cells[from] }
func (c *recurring) Counters() (n device.Counters) { return n }
func (c *recurring) Close()                        {}
func (c *recurring) MoveInCells(to, from device.CellRow) {
	c.cells[to.Cell].rows[to.Row] = c.cells[from.Cell].rows[from.Row]
}

var errInjected = errors.New("injected")

// Submit computes a step, and fails a few before or after it.
func (c *recurring) Submit(s *device.Step) func() error {
	c.steps++
	fails := c.r != nil && c.r.IntN(20) == 0
	if fails && c.r.IntN(2) == 0 {
		return device.Ended(errInjected)
	}
	for q := range s.Seqs {
		if err := c.sequence(s, q); err != nil {
			return device.Ended(fmt.Errorf("sequence %d: %w", q, err))
		}
	}
	if fails {
		return device.Ended(errInjected)
	}
	return device.Ended(nil)
}

// check makes the checks of ifl_check.
func (c *recurring) check(s *device.Step, q int) (list []int32, err error) {
	past, n, from := s.Past[q], s.First[q+1]-s.First[q], s.CellFrom[q]
	if s.CellAt[q+1] < s.CellAt[q] || int(s.CellAt[q+1]) > len(s.Cell) {
		return nil, fmt.Errorf("cells %d to %d of %d", s.CellAt[q], s.CellAt[q+1], len(s.Cell))
	}
	list = s.Cell[s.CellAt[q]:s.CellAt[q+1]]
	if last := past + n - 1; n < 1 || from < 0 || from > 0 && 16*from >= past || int(last/16-from)+1 != len(list) {
		return nil, fmt.Errorf("%d cells from %d on for %d rows and %d more", len(list), from, past, n)
	}
	for i, id := range list {
		if id < -1 || int(id) >= c.cfg.Cells || id < 0 && 16*(from+int32(i)) < past {
			return nil, fmt.Errorf("cell %d of %v", i, list)
		}
	}
	for t := s.First[q]; t < s.First[q+1]; t++ {
		if s.Slot[t] != past+t-s.First[q] || c.paged && int(s.Slot[t]/64) >= int(s.PageAt[q+1]-s.PageAt[q]) {
			return nil, fmt.Errorf("row %d of token %d", s.Slot[t], t)
		}
	}
	c.most = max(c.most, len(list))
	return list, nil
}

// sequence computes the rows of one sequence.
func (c *recurring) sequence(s *device.Step, q int) error {
	list, err := c.check(s, q)
	if err != nil {
		return err
	}
	first, past, from := s.First[q], s.Past[q], s.CellFrom[q]
	tree := s.Masked && s.Mask[int(first)*s.MaskWords]&1 > 0
	h := uint64(0)
	if from > 0 {
		if !c.cells[list[0]].started {
			return fmt.Errorf("the start of cell %d is not stored", from)
		}
		h = c.cells[list[0]].start
	}
	start := func(row int32) { // the hash before a row may start a cell
		if id := list[row/16-from]; row%16 == 0 && row/16 > from && id >= 0 {
			c.cells[id].start, c.cells[id].started = h, !tree || row <= past
		}
	}
	for row := 16 * from; row < past; row++ {
		start(row)
		token := c.cells[list[row/16-from]].rows[row%16]
		if token == 0 {
			return fmt.Errorf("row %d is not in its cell", row)
		}
		h = next(h, token-1)
	}
	if err := c.checkPages(s, q, h); err != nil {
		return err
	}
	before := h
	hashes := make([]uint64, s.First[q+1]-first)
	for t := first; t < s.First[q+1]; t++ {
		row := s.Slot[t]
		start(row)
		if id := list[row/16-from]; id >= 0 {
			c.cells[id].rows[row%16] = s.ID[t] + 1
		}
		if c.paged {
			c.pages[s.Page[s.PageAt[q]+row/64]][row%64] = s.ID[t] + 1
		}
		h = next(h, s.ID[t])
		if hashes[t-first] = h; tree {
			hashes[t-first] = seen(s, t, first, before)
		}
	}
	for r, t := range s.OutRow[:s.OutRows] {
		if t >= first && t < s.First[q+1] {
			s.Out[0][16*r], s.Out[0][16*r+1] = float32(hashes[t-first]>>40), float32(hashes[t-first]>>16&0xffffff)
		}
	}
	return nil
}

// seen returns the hash after what a token of a tree sees.
func seen(s *device.Step, t, first int32, h uint64) uint64 {
	for i := range t - first + 1 {
		if s.Mask[int(t)*s.MaskWords+int(i/64)]>>(i%64)&1 > 0 {
			h = next(h, s.ID[first+i])
		}
	}
	return h
}

// checkPages compares the hash of the rows before a step with that of the pages.
func (c *recurring) checkPages(s *device.Step, q int, want uint64) error {
	h := uint64(0)
	for row := range s.Past[q] {
		if c.paged {
			h = next(h, c.pages[s.Page[s.PageAt[q]+row/64]][row%64]-1)
		}
	}
	if c.paged && h != want {
		return fmt.Errorf("the cells of %d rows have another hash than the pages", s.Past[q])
	}
	return nil
}
