package interp

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A Step is the ragged batch of one run: T tokens of any mix of sequences. All slices
// except OutRows have one element per token, or are nil.
type Step struct {
	IDs     []int                     // token ids
	Pos     []int                     // position of each token; nil: continues after the rows of its sequence, or from 0 in a graph on sources
	Seq     []int                     // sequence of each token; nil: all 0
	Slot    []int                     // slot of the row that each token writes; nil: Pos
	Types   []int                     // token types; nil: all 0
	OutRows []int                     // tokens with outputs; nil: all
	Mask    [][]bool                  // Mask[t][u] reports whether token t sees the row that token u writes in this step; nil: by position and sequence
	Extra   map[string]*tensor.Tensor // inputs other than ids, pos, out_rows and types, by name
	Adapter []int                     // adapter of each token, an index in Adapters or -1; nil: none
	// Adapters hold what each adapter adds to the weights.
	Adapters []Weights
	Comm     Comm // connection to the other ranks, for the program of one rank
	Trace    func(v *ir.Value, index []int, tpRank int, t *tensor.Tensor)
}

// filled returns the step with all defaults filled in and lengths checked. A step without
// ids has as many tokens as Pos. Positions of sources start at 0, because a source is
// processed in one step.
func (s *Step) filled(st *States, onSources bool) (*Step, error) {
	f := *s
	n := max(len(s.IDs), len(s.Pos))
	if f.Seq == nil {
		f.Seq = make([]int, n)
	}
	if len(f.Seq) != n {
		return nil, fmt.Errorf("step: %d sequences for %d tokens", len(f.Seq), n)
	}
	if f.Pos == nil {
		next := map[int]int{}
		for _, q := range f.Seq {
			held := st.Len(q)
			if onSources {
				held = 0
			}
			f.Pos = append(f.Pos, held+next[q])
			next[q]++
		}
	}
	if f.Slot == nil {
		f.Slot = f.Pos
	}
	if f.Types == nil {
		f.Types = make([]int, n)
	}
	if f.Adapter == nil {
		f.Adapter = slices.Repeat([]int{-1}, n)
	}
	if f.OutRows == nil {
		for t := range n {
			f.OutRows = append(f.OutRows, t)
		}
	}
	for _, c := range []struct {
		name string
		got  int
	}{{"positions", len(f.Pos)}, {"slots", len(f.Slot)}, {"types", len(f.Types)}, {"adapters", len(f.Adapter)}} {
		if c.got != n {
			return nil, fmt.Errorf("step: %d %s for %d tokens", c.got, c.name, n)
		}
	}
	if f.Mask != nil && len(f.Mask) != n {
		return nil, fmt.Errorf("step: mask of %d rows for %d tokens", len(f.Mask), n)
	}
	for t := range f.Mask {
		if len(f.Mask[t]) != n {
			return nil, fmt.Errorf("step: mask row %d has %d entries for %d tokens", t, len(f.Mask[t]), n)
		}
	}
	for t, slot := range f.Slot {
		if slot < 0 || slot > maxSlot || f.Pos[t] < 0 {
			return nil, fmt.Errorf("step: token %d has slot %d and position %d, expected 0 to %d", t, slot, f.Pos[t], maxSlot)
		}
	}
	return &f, nil
}

// dim returns the size of a dim in this step.
func (s *Step) dim(d *ir.Dim) int {
	switch d.Role {
	case "out_rows":
		return len(s.OutRows)
	case "sequences":
		seen := map[int]bool{}
		for _, q := range s.Seq {
			seen[q] = true
		}
		return len(seen)
	}
	return len(s.Pos)
}

// input returns the tensor of a graph's input.
func (s *Step) input(v *ir.Value) (*tensor.Tensor, error) {
	if t := s.Extra[v.Name]; t != nil {
		return t, nil
	}
	ints, ok := map[string][]int{"ids": s.IDs, "pos": s.Pos, "out_rows": s.OutRows, "types": s.Types}[v.Name]
	if !ok {
		return nil, fmt.Errorf("step: no value for input %s", v)
	}
	t := tensor.New(tensor.I32, len(ints))
	for i, n := range ints {
		t.F[i] = float64(n)
	}
	return t, nil
}
