package ir

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
)

// Get returns an attribute's value; ok is false if it is absent.
func (as Attrs) Get(name string) (val any, ok bool) {
	for _, a := range as {
		if a.Name == name {
			return a.Val, true
		}
	}
	return nil, false
}

// Set adds an attribute or replaces its value.
func (as *Attrs) Set(name string, val any) {
	for i := range *as {
		if (*as)[i].Name == name {
			(*as)[i].Val = val
			return
		}
	}
	*as = append(*as, Attr{name, val})
}

// Delete removes an attribute, if it is there.
func (as *Attrs) Delete(name string) {
	*as = slices.DeleteFunc(*as, func(a Attr) bool { return a.Name == name })
}

// Attr returns the declaration of an attribute, or nil.
func (d *OpDef) Attr(name string) *AttrDef {
	for i := range d.Attrs {
		if d.Attrs[i].Name == name {
			return &d.Attrs[i]
		}
	}
	return nil
}

func (d *OpDef) attrNames() []string {
	var names []string
	for _, a := range d.Attrs {
		names = append(names, a.Name)
	}
	return names
}

// zero returns the value of an absent attribute.
func (d *AttrDef) zero() any {
	if d.Default != nil {
		return d.Default
	}
	switch d.Kind {
	case IntAttr, PerLayerInt:
		return 0
	case FloatAttr, PerLayerFloat:
		return 0.0
	case BoolAttr:
		return false
	case WordAttr:
		return ""
	case DTypeAttr:
		return tensor.Invalid
	case IntsAttr:
		return []int(nil)
	}
	return []float64(nil)
}

// implied reports whether val equals the value of the absent attribute, so that it
// need not be written. A number without a declared default is never implied: if it
// is absent, it is derived, such as the scale of attention.
func (d *AttrDef) implied(val any) bool {
	switch {
	case d.Required:
		return false
	case d.Kind == BoolAttr || d.Default != nil:
		return reflect.DeepEqual(val, d.zero())
	}
	return false
}

// normalize sorts attributes in the order of the definition and drops implied
// values. Unknown attributes go last, for the verifier to report.
func (as Attrs) normalize(def *OpDef) Attrs {
	var out Attrs
	for i := range def.Attrs {
		d := &def.Attrs[i]
		if v, ok := as.Get(d.Name); ok && !d.implied(v) {
			out = append(out, Attr{d.Name, v})
		}
	}
	for _, a := range as {
		if def.Attr(a.Name) == nil {
			out = append(out, a)
		}
	}
	return out
}

// attr returns the attribute's value, or its default. It panics if the op does not
// declare the attribute.
func (o *Op) attr(name string) any {
	if v, ok := o.Attrs.Get(name); ok {
		return v
	}
	d := o.Def.Attr(name)
	if d == nil {
		panic(fmt.Sprintf("bug: op %s has no attribute %s", o.Def.Name, name))
	}
	return d.zero()
}

func attrAs[V any](o *Op, name string) V {
	v, ok := o.attr(name).(V)
	if !ok {
		panic(fmt.Sprintf("bug: attribute %s of op %s is a %T, not a %T", name, o.Def.Name, o.attr(name), v))
	}
	return v
}

// Has reports whether the attribute is set on the op.
func (o *Op) Has(name string) bool { _, ok := o.Attrs.Get(name); return ok }

// SetAttr sets an attribute and keeps the canonical order.
func (o *Op) SetAttr(name string, val any) {
	o.Attrs.Set(name, val)
	o.Attrs = o.Attrs.normalize(o.Def)
}

// Int returns an integer attribute, or its default.
func (o *Op) Int(name string) int { return attrAs[int](o, name) }

// Float returns a number attribute, or its default.
func (o *Op) Float(name string) float64 { return attrAs[float64](o, name) }

// Bool returns a flag.
func (o *Op) Bool(name string) bool { return attrAs[bool](o, name) }

// Word returns a word attribute, or its default.
func (o *Op) Word(name string) string { return attrAs[string](o, name) }

// DType returns an element-type attribute, or its default.
func (o *Op) DType(name string) tensor.DType { return attrAs[tensor.DType](o, name) }

// Ints returns a list of integers. A per-layer attribute with one number for all
// layers is a list of one element.
func (o *Op) Ints(name string) []int {
	if n, ok := o.attr(name).(int); ok {
		return []int{n}
	}
	return attrAs[[]int](o, name)
}

// Floats returns a list of numbers. A per-layer attribute with one number for all
// layers is a list of one element.
func (o *Op) Floats(name string) []float64 {
	if f, ok := o.attr(name).(float64); ok {
		return []float64{f}
	}
	return attrAs[[]float64](o, name)
}

// IntAt returns a per-layer integer for an iteration (from 0) of the repeat.
func (o *Op) IntAt(name string, iter int) int {
	if ns := o.Ints(name); len(ns) > 1 {
		return ns[iter]
	} else if len(ns) == 1 {
		return ns[0]
	}
	return 0
}

// FloatAt returns a per-layer number for an iteration (from 0) of the repeat.
func (o *Op) FloatAt(name string, iter int) float64 {
	if fs := o.Floats(name); len(fs) > 1 {
		return fs[iter]
	} else if len(fs) == 1 {
		return fs[0]
	}
	return 0
}

// AtIteration returns the op for one iteration (from 0) of its repeat: lists of
// per-layer attributes are replaced by the element of that iteration. An op without
// such lists is returned unchanged.
func (o *Op) AtIteration(iter int) *Op {
	out := o
	for i, a := range o.Attrs {
		d := o.Def.Attr(a.Name)
		if d == nil || d.Kind != PerLayerInt && d.Kind != PerLayerFloat {
			continue
		}
		var val any
		switch a.Val.(type) {
		case []int:
			val = o.IntAt(a.Name, iter)
		case []float64:
			val = o.FloatAt(a.Name, iter)
		default:
			continue
		}
		if out == o {
			c := *o
			c.Attrs = slices.Clone(o.Attrs)
			out = &c
		}
		out.Attrs[i].Val = val
	}
	return out
}
