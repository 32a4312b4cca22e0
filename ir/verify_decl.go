package ir

import (
	"github.com/iflowc/iflowc/ir/tensor"
)

// maxElems is the maximum number of elements of one weight or row, so that products
// of sizes cannot overflow.
const maxElems = 1 << 42

func (v *verifier) declarations() {
	if !goodWord.MatchString(v.mod.Name) {
		v.errs.addf(v.mod.Pos, "module name %q is not a word", v.mod.Name)
	}
	names := map[string]bool{}
	for _, w := range v.mod.Weights {
		v.weights[w] = true
		v.declaration(w, Weight, names)
		v.weightType(w)
	}
	names = map[string]bool{}
	for _, st := range v.mod.States {
		v.states[st] = true
		v.declaration(st, State, names)
		v.stateType(st)
	}
	v.transforms()
}

func (v *verifier) declaration(d *Value, kind Kind, names map[string]bool) {
	if d.Kind != kind {
		v.errs.addf(d.Pos, "%s is listed as a %s but is a %s", d, kind, d.Kind)
	}
	if !goodName.MatchString(d.Name) {
		v.errs.addf(d.Pos, "name %q contains illegal characters", d.Name)
	}
	if names[d.Name] {
		v.errs.addf(d.Pos, "%s %s is declared twice", kind, d)
	}
	names[d.Name] = true
	for _, r := range d.Count {
		if r.Lo < 0 || r.Hi <= r.Lo || r.Hi > maxSize {
			v.errs.addf(d.Pos, "%s: index range %d..%d is empty or out of range", d, r.Lo, r.Hi)
		}
	}
}

func (v *verifier) weightType(w *Value) {
	n := 1
	for _, s := range w.Type.Shape {
		if s.Dim != nil || s.N < 1 || s.N > maxSize || n > maxElems/s.N {
			v.errs.addf(w.Pos, "%s is %s: sizes of weights must be positive, with at most %d elements in total", w, w.Type, maxElems)
			return
		}
		n *= s.N
	}
	switch t := w.Type; {
	case t.Elem == tensor.Invalid:
		v.errs.addf(w.Pos, "%s has no element type", w)
	case len(t.Shape) == 0:
		v.errs.addf(w.Pos, "%s has no sizes", w)
	}
}

func (v *verifier) stateType(st *Value) {
	if st.State == nil || len(st.State.Fields) == 0 {
		v.errs.addf(st.Pos, "state %s has no fields", st)
		return
	}
	if st.State.Fixed != (st.State.Page == 0) || st.State.Page < 0 || st.State.Window < 0 {
		v.errs.addf(st.Pos, "state %s: page of %d rows and window of %d, expected at least 1 and at least 0", st, st.State.Page, st.State.Window)
	}
	if st.State.Fixed && (st.State.Source || st.State.Window != 0) {
		v.errs.addf(st.Pos, "state %s: a fixed state has no window and no source", st)
	}
	if st.State.Source && st.State.Window != 0 {
		v.errs.addf(st.Pos, "state %s: a source state keeps all rows, but has window %d", st, st.State.Window)
	}
	names := map[string]bool{}
	for _, f := range st.State.Fields {
		if names[f.Name] || !goodWord.MatchString(f.Name) {
			v.errs.addf(st.Pos, "state %s: field name %q is used twice or is not a word", st, f.Name)
		}
		names[f.Name] = true
		n := 1
		for _, s := range f.Shape {
			if s < 1 || s > maxSize || n > maxElems/s {
				v.errs.addf(st.Pos, "state %s: field %s: sizes must be positive", st, f)
				n = 0
				break
			}
			n *= s
		}
		if f.Elem == tensor.Invalid || len(f.Shape) == 0 {
			v.errs.addf(st.Pos, "state %s: field %s has no element type or no sizes", st, f.Name)
		} else if n > 0 && f.Shape[len(f.Shape)-1]%f.Elem.Block() != 0 {
			v.errs.addf(st.Pos, "state %s: field %s: the last size is not whole blocks of %d", st, f, f.Elem.Block())
		}
	}
}
