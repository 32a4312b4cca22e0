package ir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// transforms checks the transforms of all weights: functions, references, cycles, and
// the shapes that follow from declared types.
func (v *verifier) transforms() {
	for _, w := range v.mod.Weights {
		if w.Transform == nil {
			continue
		}
		before := len(v.errs)
		v.transformForms(w, w.Transform)
		if v.cyclic(w, nil) {
			v.errs.addf(w.Pos, "%s: its transform reads itself", w)
		}
		if len(v.errs) > before {
			continue
		}
		shape, err := transformShape(v.mod, w.Transform)
		if err != nil {
			v.errs.addf(w.Pos, "%s: %v", w, err)
		} else if shape != nil && !slices.Equal(shape, constShape(w.Type)) {
			v.errs.addf(w.Pos, "%s is %s but its transform has shape %s", w, w.Type, intList(shape))
		}
		if r := w.Transform; (r.Op == "quantize" || r.Op == "quantize_sparse") && r.Type != w.Type.Elem {
			v.errs.addf(w.Pos, "%s is %s but its transform quantizes to %s", w, w.Type, r.Type)
		}
	}
}

func (v *verifier) transformForms(w *Value, r *tensor.Transform) {
	if err := CheckTransform(r); err != nil {
		v.errs.addf(w.Pos, "%s: %v", w, err)
		return
	}
	for _, a := range r.Args {
		v.transformForms(w, a)
	}
	if strings.HasPrefix(r.Op, "part_") && len(w.Count) == 0 {
		v.errs.addf(w.Pos, "%s: transform %s selects by the last index, but the weight has none", w, r.Op)
	}
	if isExpertPart(r) {
		v.expertPart(w, r)
	}
	if r.Op == "source" {
		v.sourceIndices(w, r)
	}
	if r.Op != "weight" || w.Transform != nil && isExpertPart(w.Transform) {
		return
	}
	ref := v.mod.Weight(r.Name)
	if ref == nil {
		v.errs.addf(w.Pos, "%s: transform refers to unknown weight @%s%s", w, r.Name, spelling.DidYouMean("@"+r.Name, valueNames(v.mod.Weights)))
		return
	}
	if len(ref.Count) > len(w.Count) {
		v.errs.addf(w.Pos, "%s has %d indices but its transform reads %s, which has %d", w, len(w.Count), ref, len(ref.Count))
		return
	}
	for i, c := range ref.Count {
		if w.Count[i].Lo < c.Lo || w.Count[i].Hi > c.Hi {
			v.errs.addf(w.Pos, "%s: indices %d..%d are outside those of %s, %d..%d", w, w.Count[i].Lo, w.Count[i].Hi, ref, c.Lo, c.Hi)
		}
	}
}

// sourceIndices checks that the indices in the name of a stored tensor are those of
// the weight, and non-negative for all of its elements.
func (v *verifier) sourceIndices(w *Value, r *tensor.Transform) {
	indices, err := tensor.SourceIndices(r.Name)
	for _, x := range indices {
		if err == nil {
			err = eachIndex(x, w.Count, func(_ []int, n int) error {
				if n < 0 {
					return fmt.Errorf("%s is negative", x)
				}
				return nil
			})
		}
	}
	if err != nil {
		v.errs.addf(w.Pos, "%s: tensor %q: %v", w, r.Name, err)
	}
}

// cyclic reports whether the references of w lead back to w.
func (v *verifier) cyclic(w *Value, seen map[*Value]bool) bool {
	if seen == nil {
		seen = map[*Value]bool{}
	}
	var visit func(u *Value) bool
	visit = func(u *Value) bool {
		for _, name := range TransformRefs(u.Transform) {
			ref := v.mod.Weight(name)
			if ref == w {
				return true
			}
			if ref != nil && !seen[ref] {
				seen[ref] = true
				if visit(ref) {
					return true
				}
			}
		}
		return false
	}
	return visit(w)
}

func constShape(t Type) []int {
	var out []int
	for _, s := range t.Shape {
		out = append(out, s.N)
	}
	return out
}

// transformShape returns the shape of a transform's result, or nil if it depends on
// stored tensors of unknown shape.
func transformShape(m *Module, r *tensor.Transform) ([]int, error) {
	if r.Op == "source" {
		return nil, nil
	}
	if r.Op == "weight" {
		return constShape(m.Weight(r.Name).Type), nil
	}
	var in [][]int
	for _, a := range r.Args {
		s, err := transformShape(m, a)
		if err != nil {
			return nil, err
		}
		in = append(in, s)
	}
	if r.Op == "reshape" {
		return reshaped(r, in[0])
	}
	if slices.ContainsFunc(in, func(s []int) bool { return s == nil }) {
		return nil, nil
	}
	return TransformShape(r, in)
}

// TransformShape returns the shape of the result of one transform function for
// operands of the given shapes.
func TransformShape(r *tensor.Transform, in [][]int) ([]int, error) {
	out := slices.Clone(in[0])
	num := func(i int) int { return int(r.Nums[i]) }
	misfit := func() ([]int, error) { return nil, fmt.Errorf("transform %s does not fit shape %s", r, intList(in[0])) }
	if len(out) == 0 {
		return misfit()
	}
	switch r.Op {
	case "concat", "interleave", "linear", "layernorm":
		return joined(r, in)
	case "rows":
		if num(0) >= num(1) || num(1) > out[0] {
			return misfit()
		}
		out[0] = num(1) - num(0)
	case "cols":
		if len(out) != 2 || num(0) >= num(1) || num(1) > out[1] {
			return misfit()
		}
		out[1] = num(1) - num(0)
	case "part_rows", "part_cols", "expert_rows", "expert_cols":
		return partShape(r, out)
	case "sub":
		if !slices.Equal(out, in[1]) {
			return nil, fmt.Errorf("transform %s: operands %s and %s differ", r, intList(out), intList(in[1]))
		}
	case "dot":
		if len(out) != 1 || !slices.Equal(out, in[1]) {
			return nil, fmt.Errorf("transform %s: operands %s and %s, expected two vectors of the same length", r, intList(out), intList(in[1]))
		}
		return []int{1}, nil
	case "transpose":
		if len(out) != 2 {
			return misfit()
		}
		out[0], out[1] = out[1], out[0]
	case "reshape":
		return reshaped(r, out)
	case "fill":
		if !slices.Equal(out, []int{1}) || num(0) < 1 {
			return misfit()
		}
		return []int{num(0)}, nil
	case "permute_rows":
		if num(0) < 1 || out[0]%num(0) != 0 || out[0]/num(0)%2 != 0 {
			return misfit()
		}
	case "repeat_rows":
		if num(0) < 1 || out[0] > maxElems/num(0) {
			return misfit()
		}
		out[0] *= num(0)
	case "group_rows":
		if num(0)*num(1) != out[0] || num(2) >= num(3) || num(3) > num(1) {
			return misfit()
		}
		out[0] = num(0) * (num(3) - num(2))
	}
	return out, nil
}

// projectedShape returns the shape of a product or norm of rows.
func projectedShape(r *tensor.Transform, in [][]int) ([]int, error) {
	x, w := in[0], in[1]
	switch {
	case r.Op == "layernorm" && len(x) == 2 && slices.Equal(w, x[1:]) && slices.Equal(in[2], x[1:]):
		return slices.Clone(x), nil
	case r.Op == "linear" && len(x) == 2 && len(w) == 2 && w[1] == x[1] && (len(in) == 2 || len(in) == 3 && slices.Equal(in[2], w[:1])):
		return []int{x[0], w[0]}, nil
	}
	return nil, fmt.Errorf("transform %s does not fit shape %s", r, intList(x))
}

// joined returns the shape of operands concatenated by rows; interleave pads each
// operand to a multiple of 16 rows.
func joined(r *tensor.Transform, in [][]int) ([]int, error) {
	if r.Op == "linear" || r.Op == "layernorm" {
		return projectedShape(r, in)
	}
	for _, s := range in[1:] {
		if !slices.Equal(s[1:], in[0][1:]) {
			return nil, fmt.Errorf("transform %s: operands %s and %s differ in more than rows", r, intList(in[0]), intList(s))
		}
	}
	if r.Op == "interleave" && in[0][0] != in[1][0] {
		return nil, fmt.Errorf("transform %s: operands have %d and %d rows, expected equal numbers", r, in[0][0], in[1][0])
	}
	out := slices.Clone(in[0])
	out[0] = 0
	for _, s := range in {
		if r.Op == "interleave" {
			out[0] += (s[0] + 15) / 16 * 16
		} else {
			out[0] += s[0]
		}
	}
	return out, nil
}

// reshaped returns the shape that a reshape states, checked against the operand's
// shape if that is known.
func reshaped(r *tensor.Transform, in []int) ([]int, error) {
	var out []int
	n, was := 1, 1
	for _, d := range r.Nums {
		out = append(out, int(d))
		if int(d) < 1 || n > maxElems/int(d) {
			return nil, fmt.Errorf("transform %s: sizes must be positive", r)
		}
		n *= int(d)
	}
	for _, d := range in {
		was *= d
	}
	if in != nil && n != was {
		return nil, fmt.Errorf("transform %s: cannot reshape %d elements to %d", r, was, n)
	}
	return out, nil
}
