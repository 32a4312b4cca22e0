//go:build unix

package ranks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// stepSizes are the sizes of the tests below.
func stepSizes(cells int) *device.Config {
	return &device.Config{Pages: 5, MaxTokens: 12, MaxOutRows: 4, MaxSeqs: 3, MaskWords: 2, MaxCells: cells}
}

// newStep returns a step with the sizes of the tests below.
func newStep(t *testing.T, cells int) *device.Step {
	t.Helper()
	s, err := device.NewStep(stepSizes(cells))
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
// types, masks, cells and choices.
func TestStepWords(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 32 {
		from, to := newStep(t, i&4*2), newStep(t, i&4*2)
		for _, a := range arrays(from) {
			for j := range a {
				a[j] = r.Int32N(3)
			}
		}
		for j := range from.Mask {
			from.Mask[j] = r.Uint64()
		}
		for j := range from.Chosen {
			if from.Chosen[j] = device.Read - r.Int32N(2); i&16 > 0 && from.Chosen[j] == device.Choose && r.IntN(2) == 0 {
				from.Choices[j] = decode.Choice{Random: r.Float64(), Options: decode.Options{Temperature: 1 + r.Float64(), TopK: r.IntN(9), TopP: r.Float64(), MinP: r.Float64(), Typical: r.Float64(), TailFree: r.Float64()}}
			}
		}
		from.KVPages = r.Int32()
		from.Graph, from.Tokens, from.OutRows, from.Seqs, from.Typed, from.Masked, from.Adapted = i, 1+r.IntN(12), r.IntN(5), 1+r.IntN(3), i&1 > 0, i&2 > 0, i&8 > 0
		if err := readStep(to, appendStep(nil, from, true)); err != nil {
			t.Fatal(err)
		}
		if to.Graph != i || to.KVPages != from.KVPages || to.Tokens != from.Tokens || to.OutRows != from.OutRows || to.Seqs != from.Seqs || to.Typed != from.Typed || to.Masked != from.Masked || to.Adapted != from.Adapted {
			t.Errorf("%+v became %+v", from, to)
		}
		for j, c := range from.Chosen[:from.OutRows] {
			if to.Chosen[j] != c || c == device.Choose && to.Choices[j] != from.Choices[j] {
				t.Errorf("choice %d %+v became %d %+v", c, from.Choices[j], to.Chosen[j], to.Choices[j])
			}
		}
		again := appendStep(nil, to, true)
		if want := appendStep(nil, from, true); !slices.Equal(again, want) {
			t.Errorf("%d became %d", want, again)
		}
	}
}

// TestHostileStep checks that invalid words are an error and that nothing is written
// past the arrays.
func TestHostileStep(t *testing.T) {
	t.Parallel()
	s := newStep(t, 6)
	s.Tokens, s.OutRows, s.Seqs, s.Masked = 3, 4, 1, true
	copy(s.Chosen, []int32{device.Read, device.Choose, device.Choose, device.Read})
	s.Choices[2] = decode.Choice{Random: 0.5, Options: decode.Options{Temperature: 1}}
	good := appendStep(nil, s, true)
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
			if w[at] = v; at == 0 || at == 4 || at == 9 {
				continue // the graph's index, the flags and the pages that may be in use are not lengths
			}
			if readStep(newStep(t, 6), w) == nil {
				t.Errorf("word %d is %d", at, v)
			}
		}
	}
}

// TestHostileChoices checks that only choices that a sampler makes are accepted.
func TestHostileChoices(t *testing.T) {
	t.Parallel()
	s := newStep(t, 0)
	s.Tokens, s.OutRows, s.Seqs, s.Chosen[0] = 3, 1, 1, device.Choose
	s.Choices[0] = decode.Choice{Random: 0.5, Options: decode.Options{Temperature: 1}}
	good := appendStep(nil, s, true)
	if err := readStep(newStep(t, 0), good); err != nil {
		t.Fatal(err)
	}
	at := len(good) - choiceWords - 1
	for _, c := range []struct {
		word  int
		value int32
	}{{0, 3}, {0, -1}, {1, -1}, {3, 0x3ff00000}, {3, -1}, {5, 0x7ff00000}, {7, 0x40000000}, {9, -1}, {11, 0x7ff80000}, {13, -1}} {
		w := slices.Clone(good)
		w[at+c.word] = c.value
		if readStep(newStep(t, 0), w) == nil {
			t.Errorf("word %d of a choice is %#x", c.word, c.value)
		}
	}
}

// FuzzStep checks that no words from rank 0 make readStep panic or write past the arrays, and
// that the choices that it accepts are valid.
func FuzzStep(f *testing.F) {
	s, err := device.NewStep(stepSizes(6))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Free)
	s.Tokens, s.OutRows, s.Seqs, s.Chosen[1] = 3, 4, 1, device.Choose
	f.Add(bytesOf(appendStep(nil, s, false)))
	f.Add(bytesOf(appendStep(nil, s, true)))
	s.Choices[1] = decode.Choice{Random: 0.5, Options: decode.Options{Temperature: 1, TopK: 3}}
	f.Add(bytesOf(appendStep(nil, s, true)))
	f.Fuzz(func(t *testing.T, data []byte) {
		w := make([]int32, len(data)/4)
		copy(bytesOf(w), data)
		to := newStep(t, 6)
		if readStep(to, w) != nil {
			return
		}
		for row := range to.OutRows {
			if to.Chosen[row] == device.Choose && to.Choices[row].Check() != nil || to.Chosen[row] > device.Read {
				t.Errorf("choice %+v", to.Choices[row])
			}
		}
	})
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
