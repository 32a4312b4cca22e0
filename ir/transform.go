package ir

import (
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// A transformForm describes the arguments of a transform function.
type transformForm struct {
	name       string
	args       int // number of operands; -1: one or more
	nums       int // number of numbers; -1: one or more
	whole      bool
	typ, words bool
}

// transformForms lists the transform functions; docs/ir.md explains them.
var transformForms = []transformForm{
	{name: "concat", args: -1},
	{name: "interleave", args: 2},
	{name: "rows", args: 1, nums: 2, whole: true},
	{name: "cols", args: 1, nums: 2, whole: true},
	{name: "part_rows", args: 1, nums: -1, whole: true},
	{name: "part_cols", args: 1, nums: -1, whole: true},
	{name: "part_experts", args: 1, nums: -1, whole: true},
	{name: "expert_rows", args: 1, nums: -1, whole: true},
	{name: "expert_cols", args: 1, nums: -1, whole: true},
	{name: "transpose", args: 1},
	{name: "reshape", args: 1, nums: -1, whole: true},
	{name: "permute_rows", args: 1, nums: 1, whole: true, words: true},
	{name: "group_rows", args: 1, nums: 4, whole: true},
	{name: "repeat_rows", args: 1, nums: 1, whole: true},
	{name: "scale", args: 1, nums: 1},
	{name: "add", args: 1, nums: 1},
	{name: "l2norm_rows", args: 1},
	{name: "softplus", args: 1},
	{name: "exp", args: 1},
	{name: "sub", args: 2},
	{name: "dot", args: 2},
	{name: "linear", args: -1},
	{name: "layernorm", args: 3, nums: 1},
	{name: "fill", args: 1, nums: 1, whole: true},
	{name: "quantize", args: 1, typ: true},
	{name: "quantize_sparse", args: 1, nums: 1, typ: true},
}

// formOf returns the number of a transform function in transformForms; -1 if there is none.
func formOf(name string) int {
	return slices.IndexFunc(transformForms, func(f transformForm) bool { return f.name == name })
}

// IsTransform reports whether a transform function has the name.
func IsTransform(name string) bool { return formOf(name) >= 0 }

// CheckTransform checks the function and the arguments of one level of a transform.
func CheckTransform(r *tensor.Transform) error {
	switch r.Op {
	case "weight":
		return nil
	case "source":
		_, err := tensor.SourceIndices(r.Name)
		return err
	}
	if i := formOf(r.Op); i >= 0 {
		return transformForms[i].check(r)
	}
	var names []string
	for _, f := range transformForms {
		names = append(names, f.name)
	}
	return fmt.Errorf("unknown transform function %s%s", r.Op, spelling.DidYouMean(r.Op, names))
}

func (f transformForm) check(r *tensor.Transform) error {
	switch {
	case f.args >= 0 && len(r.Args) != f.args, f.args < 0 && len(r.Args) == 0:
		return fmt.Errorf("transform %s has %d operands, expected %s", r.Op, len(r.Args), howMany(f.args))
	case f.nums >= 0 && len(r.Nums) != f.nums, f.nums < 0 && len(r.Nums) == 0:
		return fmt.Errorf("transform %s has %d numbers, expected %s", r.Op, len(r.Nums), howMany(f.nums))
	case f.typ != (r.Type != tensor.Invalid):
		return fmt.Errorf("transform %s: missing or unexpected element type", r.Op)
	case f.words != (r.Word != ""):
		return fmt.Errorf("transform %s: missing or unexpected quoted word", r.Op)
	}
	if r.Op == "quantize_sparse" && !(r.Nums[0] > 0 && r.Nums[0] <= tensor.MaxSparseRatio) {
		return fmt.Errorf("transform %s keeps a fraction of %g of the entries, expected more than 0 and at most %g", r.Op, r.Nums[0], tensor.MaxSparseRatio)
	}
	for _, n := range r.Nums {
		if f.whole && (n != math.Trunc(n) || n < 0 || n > maxSize) {
			return fmt.Errorf("transform %s: %g is not a non-negative integer", r.Op, n)
		}
	}
	return nil
}

func howMany(n int) string {
	if n < 0 {
		return "at least 1"
	}
	return fmt.Sprint(n)
}

// RefTransform returns a transform that reads another weight of the module.
func RefTransform(w *Value) *tensor.Transform { return &tensor.Transform{Op: "weight", Name: w.Name} }

// TransformRefs returns the names of the weights that a transform reads, in order.
func TransformRefs(r *tensor.Transform) []string {
	if r == nil {
		return nil
	}
	if r.Op == "weight" {
		return []string{r.Name}
	}
	var out []string
	for _, a := range r.Args {
		out = append(out, TransformRefs(a)...)
	}
	return out
}
