package interp

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// maxStored is the maximum number of stored tensors that Random generates.
const maxStored = 1 << 20

// dotLength is the length of vectors that a module only uses in a dot product.
const dotLength = 8

// Random returns a Source of random stored tensors for tests. It contains every stored
// tensor that the modules' transforms name, with the shape that declared types and
// transforms require. Values depend only on the seed and the tensor's name, so that a
// module has the same weights before and after a pass. Elements of matrices are normal
// with variance 1/columns; those of vectors are uniform in 0.5…1.5.
//
// A shape that one module leaves open, such as the number of rows of a tensor that is
// only read in part, may follow from another module.
func Random(seed uint64, ms ...*ir.Module) (Source, error) {
	s := shapes{found: map[string]*storedShape{}}
	for _, open := range []bool{false, true} { // last those whose operands' columns may follow from others
		for _, m := range ms {
			s.mod = m
			for _, w := range m.Weights {
				if projects(TransformOf(w)) != open {
					continue
				}
				if err := s.weight(w); err != nil {
					return nil, err
				}
			}
		}
	}
	return func(name string) (*tensor.Tensor, error) {
		st := s.found[name]
		if st == nil {
			return nil, fmt.Errorf("no transform names the stored tensor %q", name)
		}
		return randomTensor(seed, name, st.shape), nil
	}, nil
}

func randomTensor(seed uint64, name string, shape []int) *tensor.Tensor {
	h := fnv.New64a()
	h.Write([]byte(name))
	rng := rand.New(rand.NewPCG(seed, h.Sum64()))
	t := tensor.New(tensor.F32, shape...)
	for i := range t.F {
		if len(shape) == 1 {
			t.F[i] = float64(float32(0.5 + rng.Float64()))
		} else {
			t.F[i] = float64(float32(rng.NormFloat64() / math.Sqrt(float64(shape[len(shape)-1]))))
		}
	}
	return t
}

// projects reports whether a transform contains the function linear.
func projects(r *tensor.Transform) bool {
	return r.Op == "linear" || slices.ContainsFunc(r.Args, projects)
}

// shapes infers the shapes of stored tensors from the transforms.
type shapes struct {
	mod   *ir.Module
	found map[string]*storedShape
}

type storedShape struct {
	shape []int
	exact bool // if false, the shape is a lower bound
}

func (s *shapes) weight(w *ir.Value) error {
	var want []int
	for _, n := range w.Type.Shape {
		want = append(want, n.N)
	}
	index := make([]int, len(w.Count))
	for i, c := range w.Count {
		index[i] = c.Lo
	}
	for {
		if err := s.push(TransformOf(w), index, want, true); err != nil {
			return fmt.Errorf("weight %s: %w", w, err)
		}
		if !nextIndex(index, w.Count) {
			return nil
		}
	}
}

// nextIndex advances an index; it returns false after the last one.
func nextIndex(index []int, count []ir.Range) bool {
	for i := len(index) - 1; i >= 0; i-- {
		if index[i]++; index[i] < count[i].Hi {
			return true
		}
		index[i] = count[i].Lo
	}
	return false
}

// push records that a transform must have the wanted shape, or, if not exact, at least
// that many rows and columns.
func (s *shapes) push(r *tensor.Transform, index []int, want []int, exact bool) error {
	num := func(i int) int { return int(r.Nums[i]) }
	switch r.Op {
	case "weight":
		return nil
	case "source":
		name, err := tensor.SourceName(r.Name, index)
		return errors.Join(err, s.note(name, want, exact))
	case "sub":
		return errors.Join(s.push(r.Args[0], index, want, exact), s.push(r.Args[1], index, want, exact))
	case "dot":
		n := cmp.Or(s.rowsKnown(r.Args[0]), s.rowsKnown(r.Args[1]), dotLength)
		return errors.Join(s.push(r.Args[0], index, []int{n}, exact), s.push(r.Args[1], index, []int{n}, exact))
	case "linear":
		n := cmp.Or(s.colsKnown(r.Args[0], index), s.colsKnown(r.Args[1], index), dotLength)
		err := errors.Join(s.push(r.Args[0], index, []int{want[0], n}, exact), s.push(r.Args[1], index, []int{want[1], n}, exact))
		for _, bias := range r.Args[2:] {
			err = errors.Join(err, s.push(bias, index, want[1:], exact))
		}
		return err
	case "layernorm":
		return errors.Join(s.push(r.Args[0], index, want, exact), s.push(r.Args[1], index, want[1:], exact), s.push(r.Args[2], index, want[1:], exact))
	case "concat", "interleave":
		return s.pushJoined(r, index, want, exact)
	case "rows":
		return s.push(r.Args[0], index, append([]int{num(1)}, want[1:]...), false)
	case "cols":
		return s.push(r.Args[0], index, []int{want[0], num(1)}, false)
	case "part_rows", "part_cols", "expert_rows", "expert_cols", "part_experts":
		return s.pushPart(r, index, want, exact)
	case "transpose":
		return s.push(r.Args[0], index, []int{want[1], want[0]}, exact)
	case "fill":
		return s.push(r.Args[0], index, []int{1}, exact)
	case "reshape":
		n := 1
		for i := range r.Nums {
			n *= num(i)
		}
		return s.push(r.Args[0], index, []int{n}, true)
	case "repeat_rows":
		return s.push(r.Args[0], index, append([]int{want[0] / num(0)}, want[1:]...), exact)
	case "group_rows":
		return s.push(r.Args[0], index, append([]int{num(0) * num(1)}, want[1:]...), true)
	}
	return s.push(r.Args[0], index, want, exact) // the other functions keep the shape
}

// pushPart derives the shape of the whole from a part: the product for equal parts,
// otherwise the largest bound.
func (s *shapes) pushPart(r *tensor.Transform, index []int, want []int, exact bool) error {
	inner, _, err := ir.PartIndex(r, index)
	if err != nil || r.Op == "part_experts" {
		return errors.Join(err, s.push(r.Args[0], inner, want, exact))
	}
	axis := 0
	if strings.HasSuffix(r.Op, "_cols") {
		axis = len(want) - 1
	}
	want = slices.Clone(want)
	if len(r.Nums) == 1 {
		want[axis] *= int(r.Nums[0])
		return s.push(r.Args[0], inner, want, exact)
	}
	most := 0.0
	for _, n := range r.Nums {
		most = max(most, n)
	}
	want[axis] = int(most)
	return s.push(r.Args[0], inner, want, false)
}

// pushJoined divides the rows of concat or interleave among the operands. Rows that are
// known from other weights and rows transforms are used; the rest is divided evenly.
func (s *shapes) pushJoined(r *tensor.Transform, index []int, want []int, exact bool) error {
	rows, open := want[0], 0
	known := make([]int, len(r.Args))
	for i, a := range r.Args {
		known[i] = s.rowsKnown(a)
		rows -= known[i]
		if known[i] == 0 {
			open++
		}
	}
	if open > 0 && (rows <= 0 || rows%open != 0) {
		return errors.New("the rows of the stored tensors in " + r.String() + " do not follow from its type; declare each tensor as a weight")
	}
	for i, a := range r.Args {
		n := known[i]
		if n == 0 {
			n = rows / open
		}
		if err := s.push(a, index, append([]int{n}, want[1:]...), exact); err != nil {
			return err
		}
	}
	return nil
}

// rowsKnown returns the row count of a transform's result, or 0 if it depends on a stored
// tensor.
func (s *shapes) rowsKnown(r *tensor.Transform) int {
	switch r.Op {
	case "weight":
		if w := s.mod.Weight(r.Name); w != nil {
			return w.Type.Shape[0].N
		}
	case "rows":
		return int(r.Nums[1] - r.Nums[0])
	case "group_rows":
		return int(r.Nums[0] * (r.Nums[3] - r.Nums[2]))
	case "part_rows":
		if len(r.Nums) > 1 {
			return 0
		}
		return s.rowsKnown(r.Args[0]) / int(r.Nums[0])
	case "repeat_rows":
		return s.rowsKnown(r.Args[0]) * int(r.Nums[0])
	case "reshape":
		return int(r.Nums[0])
	case "cols", "part_cols", "scale", "add", "l2norm_rows", "softplus", "exp", "sub", "quantize", "quantize_sparse", "permute_rows":
		return s.rowsKnown(r.Args[0])
	}
	return 0
}

// colsKnown returns the columns of a stored matrix that is wanted already; 0 if none is.
func (s *shapes) colsKnown(r *tensor.Transform, index []int) int {
	if r.Op == "layernorm" {
		r = r.Args[0]
	}
	if r.Op != "source" {
		return 0
	}
	name, err := tensor.SourceName(r.Name, index)
	if have := s.found[name]; err == nil && have != nil && len(have.shape) == 2 {
		return have.shape[1]
	}
	return 0
}

func (s *shapes) note(name string, want []int, exact bool) error {
	if len(s.found) > maxStored {
		return fmt.Errorf("more than %d stored tensors", maxStored)
	}
	old := s.found[name]
	switch {
	case old == nil:
		s.found[name] = &storedShape{slices.Clone(want), exact}
		return nil
	case len(old.shape) != len(want):
		return fmt.Errorf("stored tensor %q is wanted as %v and as %v", name, old.shape, want)
	}
	for i, n := range want {
		switch {
		case old.exact && exact && n != old.shape[i], old.exact && n > old.shape[i], exact && n < old.shape[i]:
			return fmt.Errorf("stored tensor %q is wanted as %v and as %v", name, old.shape, want)
		}
		old.shape[i] = max(n, old.shape[i])
	}
	old.exact = old.exact || exact
	return nil
}
