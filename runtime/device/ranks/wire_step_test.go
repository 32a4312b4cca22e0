//go:build unix

package ranks

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/runtime/device"
)

// newStep returns a step with the sizes of the tests below.
func newStep(t *testing.T) *device.Step {
	t.Helper()
	s, err := device.NewStep(&device.Config{Pages: 5, MaxTokens: 12, MaxOutRows: 4, MaxSeqs: 3, MaskWords: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Free)
	return s
}

// arrays returns all arrays of a step.
func arrays(s *device.Step) [][]int32 {
	return [][]int32{s.ID, s.Pos, s.Seq, s.Slot, s.Types, s.OutRow, s.First, s.Past, s.PageAt, s.Page, s.XPageAt, s.XPage, s.XRows}
}

// TestStepWords checks that a step survives encoding and decoding, with and without
// types and masks.
func TestStepWords(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 8 {
		from, to := newStep(t), newStep(t)
		for _, a := range arrays(from) {
			for j := range a {
				a[j] = r.Int32N(3)
			}
		}
		for j := range from.Mask {
			from.Mask[j] = r.Uint64()
		}
		from.Graph, from.Tokens, from.OutRows, from.Seqs, from.Typed, from.Masked = i, 1+r.IntN(12), r.IntN(5), 1+r.IntN(3), i&1 > 0, i&2 > 0
		if err := readStep(to, appendStep(nil, from)); err != nil {
			t.Fatal(err)
		}
		if to.Graph != i || to.Tokens != from.Tokens || to.OutRows != from.OutRows || to.Seqs != from.Seqs || to.Typed != from.Typed || to.Masked != from.Masked {
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
	s := newStep(t)
	s.Tokens, s.OutRows, s.Seqs, s.Masked = 3, 1, 1, true
	good := appendStep(nil, s)
	for n := range good {
		if readStep(newStep(t), good[:n]) == nil {
			t.Errorf("%d of %d words were accepted", n, len(good))
		}
	}
	if readStep(newStep(t), append(slices.Clone(good), 0)) == nil {
		t.Error("one extra word was accepted")
	}
	for at := range stepHead {
		for _, v := range []int32{-1, -1 << 31, 1<<31 - 1} {
			w := slices.Clone(good)
			if w[at] = v; at == 0 || at == 4 {
				continue // the graph's index and the flags are not lengths
			}
			if readStep(newStep(t), w) == nil {
				t.Errorf("word %d is %d", at, v)
			}
		}
	}
}
