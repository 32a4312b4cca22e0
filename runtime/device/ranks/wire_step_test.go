//go:build unix

package ranks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/device"
)

// newStep returns a step with the sizes of the tests below.
func newStep(t *testing.T, cells int) *device.Step {
	t.Helper()
	s, err := device.NewStep(&device.Config{Pages: 5, MaxTokens: 12, MaxOutRows: 4, MaxSeqs: 3, MaskWords: 2, MaxCells: cells})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Free)
	return s
}

// arrays returns all arrays of a step.
func arrays(s *device.Step) [][]int32 {
	return [][]int32{s.ID, s.Pos, s.Seq, s.Slot, s.Types, s.OutRow, s.First, s.Past, s.PageAt, s.Page, s.XPageAt, s.XPage, s.XRows, s.Adapter, s.CellAt, s.CellFrom, s.Cell}
}

// TestStepWords checks that a step survives encoding and decoding, with and without
// types, masks and cells.
func TestStepWords(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 16 {
		from, to := newStep(t, i&4*2), newStep(t, i&4*2)
		for _, a := range arrays(from) {
			for j := range a {
				a[j] = r.Int32N(3)
			}
		}
		for j := range from.Mask {
			from.Mask[j] = r.Uint64()
		}
		from.Graph, from.Tokens, from.OutRows, from.Seqs, from.Typed, from.Masked, from.Adapted = i, 1+r.IntN(12), r.IntN(5), 1+r.IntN(3), i&1 > 0, i&2 > 0, i&8 > 0
		if err := readStep(to, appendStep(nil, from)); err != nil {
			t.Fatal(err)
		}
		if to.Graph != i || to.Tokens != from.Tokens || to.OutRows != from.OutRows || to.Seqs != from.Seqs || to.Typed != from.Typed || to.Masked != from.Masked || to.Adapted != from.Adapted {
			t.Errorf("%+v became %+v", from, to)
		}
		again := appendStep(nil, to)
		if want := appendStep(nil, from); !slices.Equal(again, want) {
			t.Errorf("%d became %d", want, again)
		}
	}
}

// TestHostileStep checks that invalid words are an error and that nothing is written
// past the arrays.
func TestHostileStep(t *testing.T) {
	t.Parallel()
	s := newStep(t, 6)
	s.Tokens, s.OutRows, s.Seqs, s.Masked = 3, 1, 1, true
	good := appendStep(nil, s)
	for n := range good {
		if readStep(newStep(t, 6), good[:n]) == nil {
			t.Errorf("%d of %d words were accepted", n, len(good))
		}
	}
	if readStep(newStep(t, 6), append(slices.Clone(good), 0)) == nil {
		t.Error("one extra word was accepted")
	}
	if readStep(newStep(t, 0), good) == nil {
		t.Error("cells were accepted by a rank without any")
	}
	for at := range stepHead {
		for _, v := range []int32{-1, -1 << 31, 1<<31 - 1} {
			w := slices.Clone(good)
			if w[at] = v; at == 0 || at == 4 {
				continue // the graph's index and the flags are not lengths
			}
			if readStep(newStep(t, 6), w) == nil {
				t.Errorf("word %d is %d", at, v)
			}
		}
	}
}

// TestCopies checks which copies a worker accepts from rank 0.
func TestCopies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what int
		w    []int32
		want string // "": it is refused
	}{
		{msgCopy, []int32{4, 0}, "page 4 0"},
		{msgCopy, []int32{5, 0}, ""},
		{msgCopy, []int32{0, -1}, ""},
		{msgCopy, []int32{0}, ""},
		{msgMove, []int32{4, 63, 0, 62}, "row 4 63 0 62"},
		{msgMove, []int32{4, 64, 0, 0}, ""},
		{msgMove, []int32{0, 0, 5, 0}, ""},
		{msgCopyCell, []int32{1, 2}, "cell 1 2"},
		{msgCopyCell, []int32{3, 2}, ""},
		{msgCopyCell, []int32{1, 2, 0}, ""},
		{msgMoveInCells, []int32{2, 15, 1, 3}, "row of cell 2 15 1 3"},
		{msgMoveInCells, []int32{2, 16, 1, 3}, ""},
		{msgMoveInCells, []int32{2, 15, 1, -3}, ""},
		{msgMoveInCells, []int32{2, 15, 3, 3}, ""},
	} {
		var got recorder
		m := &runner{ctx: &got, pages: 5, cells: 3}
		if ok := m.copy(c.what, c.w); ok != (c.want != "") || string(got) != c.want {
			t.Errorf("%d %v: %v, %q, expected %q", c.what, c.w, ok, got, c.want)
		}
	}
}

// A recorder is a context that records a copy.
type recorder string

func (r *recorder) PackAdapter(a lora.Packer) (lora.Packer, error) { return a, nil }

func (r *recorder) SetAdapter(n int32, a lora.Packer) error {
	*r = recorder(fmt.Sprintf("adapter %d %v", n, a != nil))
	return nil
}
func (r *recorder) CopyPage(to, from int32) { *r = recorder(fmt.Sprintf("page %d %d", to, from)) }
func (r *recorder) CopyCell(to, from int32) { *r = recorder(fmt.Sprintf("cell %d %d", to, from)) }

func (r *recorder) MoveRow(to, from device.Row) {
	*r = recorder(fmt.Sprintf("row %d %d %d %d", to.Page, to.Row, from.Page, from.Row))
}

func (r *recorder) MoveInCells(to, from device.CellRow) {
	*r = recorder(fmt.Sprintf("row of cell %d %d %d %d", to.Cell, to.Row, from.Cell, from.Row))
}

func (r *recorder) Submit(*device.Step) func() error    { return device.Ended(nil) }
func (r *recorder) StartCalibration(bool) error         { return nil }
func (r *recorder) Calibration() (c device.Calibration) { return c }
func (r *recorder) Trace(func(device.StepTrace)) error  { return nil }
func (r *recorder) Counters() (c device.Counters)       { return c }
func (r *recorder) Close()                              {}
