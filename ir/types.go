package ir

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// N returns a constant size.
func N(n int) Size { return Size{N: n} }

// T returns a type with an element type and sizes.
func T(elem tensor.DType, shape ...Size) Type { return Type{Elem: elem, Shape: shape} }

// String returns the number, or the dim's name.
func (s Size) String() string {
	if s.Dim != nil {
		return s.Dim.Name
	}
	return strconv.Itoa(s.N)
}

// String returns the type in IR syntax: f32[T, 576].
func (t Type) String() string {
	var sizes []string
	for _, s := range t.Shape {
		sizes = append(sizes, s.String())
	}
	return t.Elem.String() + "[" + strings.Join(sizes, ", ") + "]"
}

// Equal reports whether two types have the same element type and sizes. Two dims are
// equal if they are the same Dim.
func (t Type) Equal(u Type) bool { return t.Elem == u.Elem && t.SameShape(u) }

// SameShape reports whether two types have the same sizes.
func (t Type) SameShape(u Type) bool {
	if len(t.Shape) != len(u.Shape) {
		return false
	}
	for i, s := range t.Shape {
		if s.Dim != u.Shape[i].Dim || s.Dim == nil && s.N != u.Shape[i].N {
			return false
		}
	}
	return true
}

// Rows returns the first size.
func (t Type) Rows() Size { return t.Shape[0] }

// Cols returns the last size, which must be a constant.
func (t Type) Cols() int { return t.Shape[len(t.Shape)-1].N }

// IsMatrix reports whether the type is [rows, constant].
func (t Type) IsMatrix() bool { return len(t.Shape) == 2 && t.Shape[1].Dim == nil }

// Elems returns the number of elements; every size must be a constant.
func (t Type) Elems() int {
	n := 1
	for _, s := range t.Shape {
		n *= s.N
	}
	return n
}

// String returns the state's type in IR syntax: rows {…} paged 64, or fixed {…}.
func (s *StateType) String() string {
	var fields []string
	for _, f := range s.Fields {
		fields = append(fields, f.String())
	}
	list := "{" + strings.Join(fields, ", ") + "}"
	if s.Fixed {
		return "fixed " + list
	}
	text := fmt.Sprintf("rows %s paged %d", list, s.Page)
	if s.Window > 0 {
		text += fmt.Sprintf(" window %d", s.Window)
	}
	if s.Source {
		text += " source"
	}
	return text
}

// String returns the field in IR syntax: k: f16[3, 64].
func (f Field) String() string {
	var sizes []string
	for _, n := range f.Shape {
		sizes = append(sizes, strconv.Itoa(n))
	}
	return fmt.Sprintf("%s: %s[%s]", f.Name, f.Elem, strings.Join(sizes, ", "))
}

// Elems returns the number of elements: of one row, or of a fixed state.
func (f Field) Elems() int {
	n := 1
	for _, s := range f.Shape {
		n *= s
	}
	return n
}

// Field returns the field of the given name; ok is false if there is none.
func (s *StateType) Field(name string) (f Field, ok bool) {
	for _, f := range s.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// Role states what the rows of v count: "tokens", unless its first size is a named
// dimension with another role.
func (v *Value) Role() string {
	if d := v.Type.Rows().Dim; d != nil {
		return d.Role
	}
	return "tokens"
}

// String returns the value's name with its sigil: %x, @wq.
func (v *Value) String() string {
	if v.Kind == Weight {
		return "@" + v.Name
	}
	return "%" + v.Name
}

// String returns the argument in IR syntax: %x, @wq[3].
func (a Arg) String() string {
	if a.Index == nil {
		return a.Value.String()
	}
	var parts []string
	for _, x := range a.Index {
		parts = append(parts, x.String())
	}
	return a.Value.String() + "[" + strings.Join(parts, ", ") + "]"
}

func intList(ns []int) string {
	var parts []string
	for _, n := range ns {
		parts = append(parts, strconv.Itoa(n))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// String returns the name of the kind for messages.
func (k Kind) String() string {
	switch k {
	case Weight:
		return "weight"
	case Input:
		return "input"
	case State:
		return "state"
	case Carry:
		return "carried value"
	}
	return "value"
}

// String returns the name of the attribute kind for messages and docs/ops.md.
func (k AttrKind) String() string {
	return [...]string{
		IntAttr: "integer", FloatAttr: "number", BoolAttr: "flag", WordAttr: "word", DTypeAttr: "element type",
		IntsAttr: "integers", FloatsAttr: "numbers", PerLayerInt: "integer, per layer", PerLayerFloat: "number, per layer",
	}[k]
}
