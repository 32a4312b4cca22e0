package ctext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
)

// LayerIndex is the variable of a loop over layers.
const LayerIndex = "l"

// Symbols are macros for the places of values, weights and states. Text that
// uses one has it defined by [Symbols.Define].
type Symbols struct {
	Layout  *layout.Layout
	Backend Backend
	defined map[string]string // macro with its parameters → text
}

// NewSymbols names what a layout placed.
func NewSymbols(l *layout.Layout, b Backend) *Symbols {
	return &Symbols{Layout: l, Backend: b, defined: map[string]string{}}
}

// Row is the address of a row.
func (s *Symbols) Row(p layout.Place, row string) string {
	array := fmt.Sprintf("s->out[%d]", p.Output)
	if p.Buffer != nil {
		array = fmt.Sprintf("c->buffer[%d]", p.Buffer.Number)
	}
	s.defined[p.Symbol+"(t)"] = fmt.Sprintf("(%s + (int64_t)(t) * %d)", array, p.Pitch)
	return p.Symbol + "(" + row + ")"
}

// Rows is the address of all rows.
func (s *Symbols) Rows(p layout.Place) string { return s.Row(p, "0") }

// Weight is the address of the element of a weight that an argument reads: of
// floats where the weight is rows.
func (s *Symbols) Weight(a ir.Arg, in *layout.Loop) (string, error) {
	w := s.Layout.Weights[a.Value]
	i, array, err := w.Index(a, in)
	if err != nil {
		return "", err
	}
	at := Plus(s.Backend.Weights(w), wide(w.At), layer(array, w.Lo, w.Stride))
	if !w.Matrix {
		at = "(const float *)(" + at + ")"
	}
	return s.element(w.Symbol, "("+at+")", array, i), nil
}

// State is the address of the first page of the element that an argument reads.
func (s *Symbols) State(a ir.Arg, in *layout.Loop) (string, error) {
	st := s.Layout.State(a.Value)
	i, array, err := st.Index(a, in)
	if err != nil {
		return "", err
	}
	at := Plus(wide(st.At), layer(array, st.Lo, st.Page))
	if strings.Contains(at, " ") {
		at = "(" + at + ")"
	}
	return s.element(st.Symbol, "("+s.Backend.State(at)+")", array, i), nil
}

// A StateSize is a size of a state by name.
type StateSize string

// The sizes of a state.
const (
	PageBytes StateSize = "PAGE_OF"  // bytes of a page of one element
	KVHeads   StateSize = "HEADS_OF" // key and value heads
	KeyDim    StateSize = "DIM_OF"   // numbers of a key
	ValueDim  StateSize = "VDIM_OF"  // numbers of a value
)

// Size is a size of a state.
func (s *Symbols) Size(st *layout.State, size StateSize) string {
	name := string(size) + strings.TrimPrefix(st.Symbol, "STATE")
	s.defined[name] = map[StateSize]string{
		PageBytes: Wide(st.Page), KVHeads: strconv.Itoa(st.KVHeads), KeyDim: strconv.Itoa(st.Dim), ValueDim: strconv.Itoa(st.VDim),
	}[size]
	return name
}

// element names one element of an array, or what is no array.
func (s *Symbols) element(name, text string, array bool, index ir.Index) string {
	if !array {
		s.defined[name] = text
		return name
	}
	s.defined[name+"("+LayerIndex+")"] = text
	return name + "(" + Index(index) + ")"
}

// Index is the C of an element's index, in the loop over layers if it depends on
// that.
func Index(x ir.Index) string { return x.Text(func(int) string { return LayerIndex }) }

// layer is the offset of a layer's element in the text of a macro.
func layer(array bool, lo int, stride int64) string {
	if !array {
		return "0"
	}
	return Times(Minus("("+LayerIndex+")", lo), stride)
}

// wide is an offset, nothing for zero.
func wide(n int64) string {
	if n == 0 {
		return "0"
	}
	return Wide(n)
}

// Define writes the macros that were used.
func (s *Symbols) Define(w *Writer) {
	names := make([]string, 0, len(s.defined))
	for name := range s.defined {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		w.P("#define %s %s", name, s.defined[name])
	}
}
