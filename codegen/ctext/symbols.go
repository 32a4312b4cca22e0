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

// Symbols are C macros for the locations of values, weights and states.
// [Symbols.Define] defines those that the code uses.
type Symbols struct {
	Layout  *layout.Layout
	Backend Backend
	defined map[string]string // macro with its parameters → text
}

// NewSymbols returns the symbols of a layout.
func NewSymbols(l *layout.Layout, b Backend) *Symbols {
	return &Symbols{Layout: l, Backend: b, defined: map[string]string{}}
}

// Row returns the address of a row.
func (s *Symbols) Row(p layout.Place, row string) string {
	array := fmt.Sprintf("s->out[%d]", p.Output)
	if p.Buffer != nil {
		array = fmt.Sprintf("c->buffer[%d]", p.Buffer.Number)
	}
	s.defined[p.Symbol+"(t)"] = "(" + Plus(array, fmt.Sprintf("(int64_t)(t) * %d", p.Pitch), strconv.Itoa(p.Column)) + ")"
	return p.Symbol + "(" + row + ")"
}

// Rows returns the address of all rows.
func (s *Symbols) Rows(p layout.Place) string { return s.Row(p, "0") }

// Weight returns the address of the weight element that an argument reads, as
// floats if the weight consists of rows.
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

// Layer returns the number of the layer whose weight an argument reads, from 0.
func (s *Symbols) Layer(a ir.Arg, in *layout.Loop) (string, error) {
	i, array, err := layout.LayerOf(a, in)
	if err != nil || !array {
		return "0", err
	}
	return Minus(Index(i), a.Count[0].Lo), nil
}

// State returns the address of the first page of the state element that an
// argument reads.
func (s *Symbols) State(a ir.Arg, in *layout.Loop) (string, error) {
	return s.elements(&s.Layout.State(a.Value).Elements, s.Backend.State, a, in)
}

// Cells returns the address of the first cell of the state element that an argument
// names.
func (s *Symbols) Cells(a ir.Arg, in *layout.Loop) (string, error) {
	return s.elements(&s.Layout.FixedState(a.Value).Elements, s.Backend.Cells, a, in)
}

// elements returns the address of a state's element; base returns that of an offset.
func (s *Symbols) elements(e *layout.Elements, base func(offset string) string, a ir.Arg, in *layout.Loop) (string, error) {
	i, array, err := e.Index(a, in)
	if err != nil {
		return "", err
	}
	at := Plus(wide(e.At), layer(array, e.Lo, e.Each))
	if strings.Contains(at, " ") {
		at = "(" + at + ")"
	}
	return s.element(e.Symbol, "("+base(at)+")", array, i), nil
}

// A StateSize is the macro name of a size of a state.
type StateSize string

// The sizes of a state.
const (
	PageBytes StateSize = "PAGE_OF"  // bytes of a page of one element
	KVHeads   StateSize = "HEADS_OF" // KV heads
	KeyDim    StateSize = "DIM_OF"   // columns of a key
	ValueDim  StateSize = "VDIM_OF"  // columns of a value
)

// Size returns the C expression of a size of a state.
func (s *Symbols) Size(st *layout.State, size StateSize) string {
	name := string(size) + strings.TrimPrefix(st.Symbol, "STATE")
	s.defined[name] = map[StateSize]string{
		PageBytes: Wide(st.Each), KVHeads: strconv.Itoa(st.KVHeads), KeyDim: strconv.Itoa(st.Dim), ValueDim: strconv.Itoa(st.VDim),
	}[size]
	return name
}

// element returns the name of one element of an array, or of a value that is
// not an array.
func (s *Symbols) element(name, text string, array bool, index ir.Index) string {
	if !array {
		s.defined[name] = text
		return name
	}
	s.defined[name+"("+LayerIndex+")"] = text
	return name + "(" + Index(index) + ")"
}

// Index returns the C expression of an element's index, which may depend on the
// loop over layers.
func Index(x ir.Index) string { return x.Text(func(int) string { return LayerIndex }) }

// layer returns the offset of a layer's element in the text of a macro.
func layer(array bool, lo int, stride int64) string {
	if !array {
		return "0"
	}
	return Times(Minus("("+LayerIndex+")", lo), stride)
}

// wide returns an offset, or "" for zero.
func wide(n int64) string {
	if n == 0 {
		return "0"
	}
	return Wide(n)
}

// Define writes the definitions of the macros that the code uses.
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
