package layout

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Elements are the placement of a state in pages or cells. They are stored by element:
// the pages of element i start at (At + (i−Lo)·Each) · pages.
type Elements struct {
	Name   string // in the module
	Symbol string // in C
	Count  int    // elements: layers
	Lo     int    // index of the first element
	Each   int64  // bytes per page, or per cell, of one element
	At     int64
	array  bool
}

// elements returns the elements of a state, without their size.
func (l *Layout) elements(v *ir.Value, prefix string, at int64) Elements {
	e := Elements{Name: v.Name, Symbol: l.symbols.of(prefix, v.Name), Count: 1, At: at}
	if len(v.Count) == 1 {
		e.array, e.Count, e.Lo = true, v.Count[0].Len(), v.Count[0].Lo
	}
	return e
}

// Bytes returns the size of one page, or one cell, of every element.
func (e *Elements) Bytes() int64 { return e.Each * int64(e.Count) }

// Index returns the index of the element that an argument reads in a region, like
// [Weight.Index].
func (e *Elements) Index(a ir.Arg, in *Loop) (index ir.Index, array bool, err error) {
	return elementIndex(a, in, e.array)
}

// A State is the placement of the KV cache of one attention.
type State struct {
	Elements
	Elem    tensor.DType // keys beside values of q4_b32t2 are q5r_b32t2
	KVHeads int
	Dim     int // width of a key
	VDim    int // width of a value
}

// ElementBytes returns the size of a stored number, or for types that also store scales
// their number in ifl_kv.h.
func (s *State) ElementBytes() int {
	switch s.Elem {
	case tensor.Q8B32T2:
		return 0
	case tensor.Q4B32T2:
		return -1
	}
	return s.Elem.BlockBytes()
}

// placeStates assigns offsets to the pages: all pages of element 0, of element 1, …
func (l *Layout) placeStates() error {
	for _, v := range l.Module.States {
		if v.State.Fixed {
			if err := l.placeFixed(v); err != nil {
				return err
			}
			continue
		}
		key, val, err := fields(v)
		if err != nil {
			return fmt.Errorf("%s: state %s: %w", v.Pos, v, err)
		}
		s := &State{Elements: l.elements(v, "STATE_", l.StateBytes()), Elem: val.Elem, KVHeads: key.Shape[0], Dim: key.Shape[1], VDim: val.Shape[1]}
		s.Each = PageRows * int64(s.KVHeads) * s.rowBytes()
		l.states[v] = s
		l.States = append(l.States, s)
	}
	return nil
}

// fields returns the two fields of a state, keys and values, which may be in either
// order. A state of keys only has values of width 0.
func fields(v *ir.Value) (key, val ir.Field, err error) {
	key, isKey := v.State.Field("k")
	val, isVal := v.State.Field("v")
	if isKey && len(v.State.Fields) == 1 && len(key.Shape) == 2 {
		val, isVal = ir.Field{Name: "v", Elem: key.Elem, Shape: []int{key.Shape[0], 0}}, true
	}
	switch {
	case len(v.State.Fields) > 2 || !isKey || !isVal:
		err = fmt.Errorf("it is %s; targets keep a field k, or two fields, k and v", v.State)
	case !together(key.Elem, val.Elem) || len(key.Shape) != 2 || len(val.Shape) != 2 || key.Shape[0] != val.Shape[0]:
		err = fmt.Errorf("it is %s; targets keep k and v as TYPE[heads, width], of one type and as many heads", v.State)
	case !slices.Contains([]tensor.DType{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8B32T2, tensor.Q4B32T2}, val.Elem):
		err = fmt.Errorf("it is of %s; targets keep keys and values as f32, f16, bf16, q8_b32t2 or q5r_b32t2 with q4_b32t2", key.Elem)
	case val.Elem == tensor.Q4B32T2 && (key.Shape[1]%32 != 0 || val.Shape[1]%32 != 0):
		err = fmt.Errorf("it is %s; widths of q5r_b32t2 and q4_b32t2 are whole blocks of 32", v.State)
	}
	return key, val, err
}

// together reports whether targets keep keys of one type beside values of another.
func together(key, val tensor.DType) bool {
	return key == val.OfKeys()
}

// rowBytes returns the size of one row of one head: keys and values padded to 16
// elements, and for q8_b32t2 a 16-bit scale per 32 elements (ifl_kv.h).
func (s *State) rowBytes() int64 {
	elems := int64(Round16(s.Dim) + Round16(s.VDim))
	if s.Elem == tensor.Q4B32T2 {
		return int64(tensor.Q5RB32T2.RowBytes(s.Dim) + tensor.Q4B32T2.RowBytes(s.VDim))
	}
	if s.Elem == tensor.Q8B32T2 {
		return elems + 2*int64((s.Dim+31)/32+(s.VDim+31)/32)
	}
	return elems * int64(s.Elem.BlockBytes())
}
