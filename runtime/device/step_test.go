//go:build unix

package device_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/device"
)

func shapes() *device.Config {
	return &device.Config{
		Threads: 1, Pages: 4, MaxTokens: 7, MaxOutRows: 3, MaxSeqs: 2, MaskWords: 2, MaxPages: 9, Cells: 3, MaxCells: 11,
		Outputs: []device.Array{{Rows: 3, Cols: 5}, {Rows: 7, Cols: 2}},
	}
}

// TestNewStep checks the length of each array and that arrays do not overlap.
func TestNewStep(t *testing.T) {
	t.Parallel()
	s, err := device.NewStep(shapes())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	for _, a := range []struct {
		list []int32
		n    int
	}{
		{s.ID, 7}, {s.Pos, 7}, {s.Seq, 7}, {s.Slot, 7}, {s.Types, 7}, {s.OutRow, 3}, {s.TopK, 3}, {s.First, 3}, {s.PageAt, 3},
		{s.Past, 2}, {s.Page, 9}, {s.XPageAt, 3}, {s.XPage, 9}, {s.XRows, 2}, {s.CellAt, 3}, {s.CellFrom, 2}, {s.Cell, 11},
	} {
		if len(a.list) != a.n || cap(a.list) != a.n {
			t.Fatalf("array of %d elements, expected %d", len(a.list), a.n)
		}
		for i := range a.list {
			if a.list[i] != 0 {
				t.Fatalf("two arrays share memory")
			}
			a.list[i] = 77
		}
	}
	if len(s.Mask) != 14 || len(s.Out) != 2 || len(s.Out[0]) != 15 || len(s.Out[1]) != 14 {
		t.Errorf("%d mask words, outputs of %d and %d elements", len(s.Mask), len(s.Out[0]), len(s.Out[1]))
	}
}

// TestLargest: the largest logits of all parts of a row, and none if one is not finite.
func TestLargest(t *testing.T) {
	t.Parallel()
	s, err := device.NewStep(shapes())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	list := []device.Best{{2, 7}, {At: device.BestNone}, {3, 9}, {2, 4}, {1, 1}}
	for _, c := range []struct {
		parts []device.Best
		k     int32
		want  []device.Best
	}{
		{list, 3, []device.Best{{3, 9}, {2, 4}, {2, 7}}},
		{list, 9, []device.Best{{3, 9}, {2, 4}, {2, 7}, {1, 1}}},
		{[]device.Best{{3, 9}, {5, device.BestUnsure}}, 3, nil},
		{[]device.Best{{At: device.BestNone}}, 3, nil},
	} {
		s.TopK[1] = c.k
		s.SetArgmax(1, c.parts, 1)
		s.SetLargest(1, c.parts)
		if !slices.Equal(s.Largest[1], c.want) {
			t.Errorf("%v, want %v", s.Largest[1], c.want)
		}
	}
	s.SetArgmax(2, list, 2) // every second one
	if want := []device.Best{{3, 9}}; !slices.Equal(s.Largest[2], want) {
		t.Errorf("%v, want %v", s.Largest[2], want)
	}
	s.ForgetLargest()
	if len(s.Largest[1])+len(s.Largest[2]) > 0 {
		t.Errorf("%v", s.Largest)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := shapes().Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*device.Config){
		"tokens per step":  func(c *device.Config) { c.MaxTokens = 0 },
		"output rows":      func(c *device.Config) { c.MaxOutRows = -1 },
		"sequences":        func(c *device.Config) { c.MaxSeqs = 1 << 25 },
		"cells must be":    func(c *device.Config) { c.Cells = -1 },
		"the maximum of 8": func(c *device.Config) { c.Outputs = make([]device.Array, 9) },
		"64-byte aligned": func(c *device.Config) {
			c.Weights = device.Carve[byte](&device.Slab{Bytes: make([]byte, 256)}, 129)[1:]
		},
	} {
		c := shapes()
		if change(c); c.Check() == nil || !strings.Contains(c.Check().Error(), want) {
			t.Errorf("error %v, expected %q in it", c.Check(), want)
		}
	}
}

// TestEnded checks that wait returns the step's error, and allocates nothing without
// one.
func TestEnded(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { _ = device.Ended(nil)() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	failed := errors.New("failed")
	if err := device.Ended(failed)(); err != failed {
		t.Error(err)
	}
}

func TestRowOf(t *testing.T) {
	t.Parallel()
	if r := device.RowOf([]int32{8, 3}, device.PageRows+5); r != (device.Row{Page: 3, Row: 5}) {
		t.Errorf("%+v", r)
	}
	if r := device.CellRowOf([]int32{8, 3}, 4, 5*device.CellRows+7); r != (device.CellRow{Cell: 3, Row: 7}) {
		t.Errorf("%+v", r)
	}
}

// TestNoCells checks that a step of a model without fixed-size states has no arrays of
// cells.
func TestNoCells(t *testing.T) {
	t.Parallel()
	cfg := shapes()
	cfg.Cells, cfg.MaxCells = 0, 0
	s, err := device.NewStep(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	if s.CellAt != nil || s.CellFrom != nil || s.Cell != nil {
		t.Errorf("%v %v %v", s.CellAt, s.CellFrom, s.Cell)
	}
}
