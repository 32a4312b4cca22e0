//go:build unix

package cuda

import (
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// cellStep returns a model with fixed-size states alone, and a step of two sequences: 20
// tokens from the beginning, and 2 after 31 rows.
func cellStep(t *testing.T) (*model, *device.Step) {
	t.Helper()
	cfg := device.Config{Threads: 1, Pages: 1, Cells: 4, MaxCells: 8, MaxTokens: 24, MaxOutRows: 2, MaxSeqs: 3}
	s, err := device.NewStep(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Free)
	m := &model{Device: &Device{Plan: &manifest.CUDA{Graphs: make([][]manifest.CUDALaunch, 1), Cross: -1}, Manifest: &manifest.Manifest{}}, cfg: cfg, celled: true}
	s.Tokens, s.Seqs = 22, 2
	for i := range s.Tokens {
		if s.Slot[i] = int32(i); i >= 20 {
			s.Seq[i], s.Slot[i] = 1, int32(i+11)
		}
	}
	copy(s.First, []int32{0, 20, 22})
	copy(s.Past, []int32{0, 31})
	copy(s.CellAt, []int32{0, 2, 4})
	copy(s.CellFrom, []int32{0, 1})
	copy(s.Cell, []int32{-1, 3, 0, 1})
	return m, s
}

// TestCellCheck checks which cells of a step are accepted.
func TestCellCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(s *device.Step)
		ok   bool
	}{
		{"a good step", func(*device.Step) {}, true},
		{"no cell is kept of a new sequence", func(s *device.Step) { s.Cell[1] = -1 }, true},
		{"a cell of a new row is not kept", func(s *device.Step) { s.Cell[3] = -1 }, true},
		{"more cells than needed", func(s *device.Step) { s.CellAt[2] = 8 }, true},
		{"cells from the beginning", func(s *device.Step) { s.CellFrom[1], s.CellAt[2] = 0, 5 }, true},
		{"a sequence without tokens", func(s *device.Step) { s.Seqs, s.First[3], s.CellAt[3] = 3, 22, 1<<31-1 }, true},
		{"a cell with rows of earlier steps is not kept", func(s *device.Step) { s.Cell[2] = -1 }, false},
		{"a cell that is not there", func(s *device.Step) { s.Cell[0] = 4 }, false},
		{"a cell below -1", func(s *device.Step) { s.Cell[1] = -2 }, false},
		{"too few cells", func(s *device.Step) { s.CellAt[2] = 3 }, false},
		{"cells that begin below 0", func(s *device.Step) { s.CellAt[0] = -1 }, false},
		{"cells out of order", func(s *device.Step) { s.CellAt[2] = -1 << 31 }, false},
		{"cells past the end of the list", func(s *device.Step) { s.CellAt[2] = 9 }, false},
		{"a first cell below 0", func(s *device.Step) { s.CellFrom[1] = -1 }, false},
		{"a first cell after the last row", func(s *device.Step) { s.CellFrom[1] = 3 }, false},
		{"a first cell without rows of earlier steps", func(s *device.Step) { s.CellFrom[1], s.CellAt[2] = 2, 3 }, false},
		{"a row that is left out", func(s *device.Step) { s.Slot[21] = 33 }, false},
		{"a row before the first cell", func(s *device.Step) { s.Slot[20] = 3 }, false},
		{"most rows before the step", func(s *device.Step) { s.Past[1] = 1<<31 - 1 }, false},
		{"no cells", func(s *device.Step) { s.CellAt = nil }, false},
	} {
		m, s := cellStep(t)
		c.edit(s)
		if err := m.check(s); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
