package tensor

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Transform is an expression that computes a weight's values from stored tensors. The
// loader and the interpreter evaluate the same expression.
//
//	"model.layers.{i}.mlp.up_proj.weight"       a stored tensor (Op "source")
//	concat(a, b, …)                             along rows (axis 0)
//	interleave(a, b)                            alternately 16 rows of a and 16 of b; each operand is padded with zero rows to a multiple of 16
//	rows(a, lo, hi)                             rows lo ≤ r < hi
//	cols(a, lo, hi)                             columns lo ≤ c < hi of a matrix
//	part_rows(a, n)  part_cols(a, n)            one of n equal parts, selected by the weight's last index; with lo, hi, lo, hi, … in place of n, parts by bounds
//	part_experts(@w, lo, hi, …)                 experts lo ≤ e < hi, selected by the index before the last one (like the next two, only in the IR)
//	expert_rows(@w, …)  expert_cols(@w, …)      rows or columns of each expert, likewise
//	transpose(a)                                transposed matrix
//	reshape(a, d0, d1, …)                       same elements, row-major
//	permute_rows(a, heads, "gguf_rope")         inverts the row permutation of GGUF files
//	group_rows(a, groups, group, lo, hi)        rows lo ≤ r < hi of each group of `group` rows (fused QKV grouped by KV head)
//	repeat_rows(a, n)                           each row n times
//	scale(a, s)  add(a, s)                      elementwise, in float32
//	l2norm_rows(a)                              each row divided by its L2 norm
//	softplus(a)                                 log(1 + exp(x)) of each element
//	exp(a)  sub(a, b)                           exp(x) of each element; a − b, elementwise, in float32
//	dot(a, b)                                   dot product of two vectors, as one element
//	linear(a, w, b)                             a·wᵀ + b; linear(a, w) has no b
//	layernorm(a, w, b, eps)                     layer norm of each row
//	fill(a, n)                                  the one element of a, n times
//	@name                                       another weight of the module (Op "weight"; only in the IR)
//	quantize(a, type)                           to a block or float type, by its rounding rule
//	quantize_sparse(a, ratio, type)             to a block type, with this fraction of the entries as sparse float32 outliers (EncodeSparse)
type Transform struct {
	Op   string       `json:"op"`
	Name string       `json:"name,omitempty"` // source: tensor name, in which {i}, {j}, {2*i+1} are computed from the weight's indices
	Args []*Transform `json:"args,omitempty"`
	Nums []float64    `json:"nums,omitempty"` // the numbers of rows, cols, reshape, scale…
	Type DType        `json:"type,omitempty"` // quantize: target type
	Word string       `json:"word,omitempty"` // permute_rows: name of the permutation
}

// Source returns a transform that reads a stored tensor.
func Source(name string) *Transform { return &Transform{Op: "source", Name: name} }

// String returns the transform in IR syntax.
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

// Sources returns the stored tensors that the transform reads, in order, with repeats.
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

// SourceName returns the name of the stored tensor for an element of a weight. In the
// pattern, {i}, {j}, {2*i+1} are replaced by values computed from the element's indices.
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

// SourceIndices returns the indices in the name of a source.
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

// eachHole calls f for each index in braces with the text before it, then rest with the
// text after the last index.
func eachHole(pattern string, f func(before string, x Index) error, rest func(text string)) error {
	for {
		before, after, found := strings.Cut(pattern, "{")
		if !found {
			rest(pattern)
			return nil
		}
		text, after, closed := strings.Cut(after, "}")
		if !closed {
			return errors.New("missing closing }")
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

// Softplus returns log(1 + exp(x)) without overflow.
func Softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
