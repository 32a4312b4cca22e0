package tensor

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Transform says how a weight's values come from stored tensors. It is a small
// expression; the loader and the interpreter obey the same one.
//
//	"model.layers.{i}.mlp.up_proj.weight"       a stored tensor (Op "source")
//	concat(a, b, …)                             along rows (axis 0)
//	interleave(a, b)                            16 rows of a, 16 of b, in turn (N a multiple of 16, else padded with zero rows at the end of each)
//	rows(a, lo, hi)                             rows lo ≤ r < hi
//	cols(a, lo, hi)                             columns lo ≤ c < hi of a matrix
//	part_rows(a, n)  part_cols(a, n)            of n equal parts the one that the weight's last index chooses; with lo, hi, lo, hi, … for n, parts by bounds
//	part_experts(@w, lo, hi, …)                 experts lo ≤ e < hi, by the index before the last one (the IR only, as the next two)
//	expert_rows(@w, …)  expert_cols(@w, …)      rows or columns of each expert, likewise
//	transpose(a)                                of a matrix
//	reshape(a, d0, d1, …)                       same elements, row-major
//	permute_rows(a, heads, "gguf_rope")         undoes a published permutation
//	group_rows(a, groups, group, lo, hi)        of each run of `group` rows, rows lo…hi (fused QKV grouped by KV head)
//	scale(a, s)  add(a, s)                      elementwise, in float32
//	l2norm_rows(a)                              each row divided by its L2 norm
//	softplus(a)                                 log(1 + exp(x)) of each element
//	exp(a)  sub(a, b)                           e to each element; a − b, element by element, in float32
//	dot(a, b)                                   one element: the sum of the products of two vectors' elements
//	fill(a, n)                                  the one element of a, n times
//	@name                                       another weight of the module (Op "weight"; the IR only)
//	quantize(a, type)                           to a block or float type, by its rounding rule
//	quantize_sparse(a, ratio, type)             to a block type, with this fraction of the entries as sparse float32 outliers (EncodeSparse)
type Transform struct {
	Op   string       `json:"op"`
	Name string       `json:"name,omitempty"` // source: tensor name; {i}, {j}, {2*i+1} are of the weight's own indices
	Args []*Transform `json:"args,omitempty"`
	Nums []float64    `json:"nums,omitempty"` // the numbers of rows, cols, reshape, scale…
	Type DType        `json:"type,omitempty"` // quantize: the target
	Word string       `json:"word,omitempty"` // permute_rows: which permutation
}

// Source returns the transform of a stored tensor.
func Source(name string) *Transform { return &Transform{Op: "source", Name: name} }

// String prints the transform as it stands in the IR.
func (r *Transform) String() string {
	switch r.Op {
	case "source":
		return strconv.Quote(r.Name)
	case "weight":
		return "@" + r.Name
	}
	var parts []string
	for _, a := range r.Args {
		parts = append(parts, a.String())
	}
	for _, n := range r.Nums {
		parts = append(parts, strconv.FormatFloat(n, 'g', -1, 64))
	}
	if r.Type != Invalid {
		parts = append(parts, r.Type.String())
	}
	if r.Word != "" {
		parts = append(parts, strconv.Quote(r.Word))
	}
	return fmt.Sprintf("%s(%s)", r.Op, strings.Join(parts, ", "))
}

// Sources lists the stored tensors the transform reads, in order, with repeats.
func (r *Transform) Sources() []string {
	if r.Op == "source" {
		return []string{r.Name}
	}
	var out []string
	for _, a := range r.Args {
		out = append(out, a.Sources()...)
	}
	return out
}

// SourceName returns the stored tensor that a source of a transform names for an element
// of a weight: {i}, {j}, {2*i+1} stand for numbers that follow from the element's
// indices.
func SourceName(pattern string, index []int) (string, error) {
	var b strings.Builder
	err := eachHole(pattern, func(before string, x Index) error {
		n, err := x.At(index)
		b.WriteString(before)
		b.WriteString(strconv.Itoa(n))
		return err
	}, func(rest string) { b.WriteString(rest) })
	if err != nil {
		return "", fmt.Errorf("tensor %q: %w", pattern, err)
	}
	return b.String(), nil
}

// SourceIndices lists the indices that stand in the name of a source.
func SourceIndices(pattern string) ([]Index, error) {
	var out []Index
	err := eachHole(pattern, func(_ string, x Index) error {
		out = append(out, x)
		return nil
	}, func(string) {})
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", pattern, err)
	}
	return out, nil
}

// eachHole calls f for each index in braces, with the text between it and the
// one before, then rest with what follows the last.
func eachHole(pattern string, f func(before string, x Index) error, rest func(text string)) error {
	for {
		before, after, found := strings.Cut(pattern, "{")
		if !found {
			rest(pattern)
			return nil
		}
		text, after, closed := strings.Cut(after, "}")
		if !closed {
			return errors.New("a closing } is missing")
		}
		x, err := ParseIndex(text)
		if err == nil {
			err = f(before, x)
		}
		if err != nil {
			return err
		}
		pattern = after
	}
}

// Softplus is log(1 + exp(x)), without overflow.
func Softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
