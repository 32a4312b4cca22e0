package interp

import (
	"fmt"
	"math"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// panelRows is the number of rows of each operand that interleave alternates.
const panelRows = 16

// eval evaluates a transform for one index of its weight.
func (w *Transforms) eval(r *tensor.Transform, index []int) (*tensor.Tensor, error) {
	switch r.Op {
	case "source":
		name, err := tensor.SourceName(r.Name, index)
		if err != nil {
			return nil, err
		}
		t, err := w.src(name)
		if err == nil && len(t.Shape) == 0 { // a scalar
			t = &tensor.Tensor{DType: t.DType, Shape: []int{1}, F: t.F}
		}
		return t, err
	case "weight":
		ref := w.mod.Weight(r.Name)
		if ref == nil || len(ref.Count) > len(index) {
			return nil, fmt.Errorf("transform refers to @%s, which is missing or has more indices", r.Name)
		}
		return w.Weight(ref, index[:len(ref.Count)])
	}
	inner, zero, err := ir.PartIndex(r, index)
	if err != nil {
		return nil, err
	}
	var in []*tensor.Tensor
	var shapes [][]int
	for _, a := range r.Args {
		t, err := w.eval(a, inner)
		if err != nil {
			return nil, err
		}
		in = append(in, t)
		shapes = append(shapes, t.Shape)
	}
	shape, err := ir.TransformShape(r, shapes)
	if err != nil {
		return nil, err
	}
	switch r.Op {
	case "part_rows", "part_cols", "expert_rows", "expert_cols":
		return part(r, in[0], shape, index)
	case "part_experts":
		if zero {
			return tensor.New(plain(in[0].DType), in[0].Shape...), nil
		}
		return in[0], nil
	}
	return apply(r, in, shape)
}

// apply evaluates one transform function; shape is the shape of its result.
func apply(r *tensor.Transform, in []*tensor.Tensor, shape []int) (*tensor.Tensor, error) {
	x := in[0]
	num := func(i int) int { return int(r.Nums[i]) }
	switch r.Op {
	case "quantize":
		return rounded(x, r.Type)
	case "quantize_sparse":
		return withSparse(x, r.Type, r.Nums[0])
	case "scale", "add", "softplus", "exp", "sub", "dot":
		return computed(r, in), nil
	case "fill":
		return rowsOf(in, shape, func(int) (int, int) { return 0, 0 }), nil
	case "reshape":
		return &tensor.Tensor{DType: plain(x.DType), Shape: shape, F: x.F}, nil
	case "l2norm_rows":
		return unitRows(x), nil
	case "linear":
		return linearRows(in), nil
	case "layernorm":
		return layerNormRows(in, r.Nums[0]), nil
	case "cols":
		return picked(x, shape, func(row, col int) (int, int) { return row, num(0) + col }), nil
	case "transpose":
		return picked(x, shape, func(row, col int) (int, int) { return col, row }), nil
	case "concat":
		return rowsOf(in, shape, func(row int) (int, int) {
			i := 0
			for ; row >= in[i].Shape[0]; i++ {
				row -= in[i].Shape[0]
			}
			return i, row
		}), nil
	case "interleave":
		return rowsOf(in, shape, func(row int) (int, int) {
			return row / panelRows % len(in), row/panelRows/len(in)*panelRows + row%panelRows
		}), nil
	case "rows":
		return rowsOf(in, shape, func(row int) (int, int) { return 0, num(0) + row }), nil
	case "group_rows":
		take := num(3) - num(2)
		return rowsOf(in, shape, func(row int) (int, int) { return 0, row/take*num(1) + num(2) + row%take }), nil
	case "repeat_rows":
		return rowsOf(in, shape, func(row int) (int, int) { return 0, row / num(0) }), nil
	case "permute_rows":
		if r.Word != "gguf_rope" {
			return nil, fmt.Errorf("transform permute_rows: unknown order %q, expected gguf_rope", r.Word)
		}
		// GGUF stores the rows of a head as (0, d/2, 1, d/2+1, …).
		d := x.Shape[0] / num(0)
		return rowsOf(in, shape, func(row int) (int, int) {
			half, i := row%d/(d/2), row%(d/2)
			return 0, row/d*d + 2*i + half
		}), nil
	}
	return nil, fmt.Errorf("unknown transform function %s", r.Op)
}

// computed evaluates the arithmetic functions, in float32.
func computed(r *tensor.Transform, in []*tensor.Tensor) *tensor.Tensor {
	x := in[0]
	switch r.Op {
	case "scale":
		return mapped(x, func(v float32) float32 { return v * float32(r.Nums[0]) })
	case "add":
		return mapped(x, func(v float32) float32 { return v + float32(r.Nums[0]) })
	case "softplus":
		return mapped(x, func(v float32) float32 { return float32(tensor.Softplus(float64(v))) })
	case "exp":
		return mapped(x, func(v float32) float32 { return float32(math.Exp(float64(v))) })
	case "sub":
		out := tensor.New(tensor.F32, x.Shape...)
		for i, v := range x.F {
			out.F[i] = float64(float32(v) - float32(in[1].F[i]))
		}
		return out
	}
	sum := 0.0
	for i, v := range x.F {
		sum += v * in[1].F[i]
	}
	return &tensor.Tensor{DType: tensor.F32, Shape: []int{1}, F: []float64{float64(float32(sum))}}
}

// withSparse rounds a matrix to a block type and keeps a fraction of its entries as
// sparse outliers.
func withSparse(x *tensor.Tensor, dt tensor.DType, ratio float64) (*tensor.Tensor, error) {
	if len(x.Shape) != 2 {
		return nil, fmt.Errorf("transform quantize_sparse: shape %v is not a matrix", x.Shape)
	}
	rows, cols := x.Shape[0], x.Shape[1]
	raw, outliers, err := tensor.EncodeSparse(dt, tensor.Matrix{Rows: rows, Cols: cols, Row: func(r int, to []float32) {
		for c, v := range x.F[r*cols : (r+1)*cols] {
			to[c] = float32(v)
		}
	}}, tensor.SparseCount(rows, cols, ratio), nil)
	if err != nil {
		return nil, err
	}
	values := make([]float32, rows*cols)
	if err := tensor.Decode(values, dt, raw); err != nil {
		return nil, err
	}
	out := tensor.New(dt, rows, cols)
	for i, v := range values {
		out.F[i] = float64(v)
	}
	for _, d := range outliers {
		out.F[d.Row*cols+d.Col] += float64(d.Value)
	}
	return out, nil
}

// part selects the rows or columns of a part by index, padded with zeros to the widest
// part.
func part(r *tensor.Transform, x *tensor.Tensor, shape, index []int) (*tensor.Tensor, error) {
	axis := 0
	if strings.HasSuffix(r.Op, "_cols") {
		axis = 1
	}
	lo, hi, err := ir.PartOf(r, shape[axis], index)
	if err != nil || hi > x.Shape[axis] {
		return nil, fmt.Errorf("transform %s: no part for index %v", r, index)
	}
	if axis == 0 && hi-lo == shape[0] {
		return rowsOf([]*tensor.Tensor{x}, shape, func(row int) (int, int) { return 0, lo + row }), nil
	}
	out := tensor.New(plain(x.DType), shape...)
	width := len(x.F) / x.Shape[0]
	for row := range x.Shape[0] {
		switch {
		case axis == 1:
			copy(out.F[row*shape[1]:(row+1)*shape[1]], x.F[row*width+lo:row*width+hi])
		case row >= lo && row < hi:
			copy(out.F[(row-lo)*width:], x.F[row*width:(row+1)*width])
		}
	}
	return out, nil
}

// plain returns the precision of values that are no longer in whole blocks.
func plain(dt tensor.DType) tensor.DType {
	if dt.IsBlock() {
		return tensor.F64
	}
	return dt
}

// rowsOf builds a tensor row by row; from returns the operand and its row. Rows beyond
// the end of an operand are zero.
func rowsOf(in []*tensor.Tensor, shape []int, from func(row int) (arg, row2 int)) *tensor.Tensor {
	dt := in[0].DType
	for _, x := range in {
		if x.DType != dt || len(x.Shape) < 2 {
			dt = tensor.F64
		}
	}
	if len(in) == 1 {
		dt = in[0].DType
	}
	if len(shape) < 2 {
		dt = plain(dt)
	}
	out := tensor.New(dt, shape...)
	width := len(out.F) / shape[0]
	for row := range shape[0] {
		i, at := from(row)
		if at < in[i].Shape[0] {
			copy(out.F[row*width:], in[i].F[at*width:(at+1)*width])
		}
	}
	return out
}

// picked builds a matrix element by element.
func picked(x *tensor.Tensor, shape []int, from func(row, col int) (int, int)) *tensor.Tensor {
	out := tensor.New(plain(x.DType), shape...)
	for row := range shape[0] {
		for col := range shape[1] {
			r, c := from(row, col)
			out.F[row*shape[1]+col] = x.F[r*x.Shape[1]+c]
		}
	}
	return out
}

// mapped applies float32 arithmetic to each element.
func mapped(x *tensor.Tensor, f func(float32) float32) *tensor.Tensor {
	out := x.Clone()
	out.DType = tensor.F32
	for i, v := range out.F {
		out.F[i] = float64(f(float32(v)))
	}
	return out
}

// unitRows divides each row by max(its L2 norm, 10⁻¹²), as torch's normalize does, and
// rounds to float32.
func unitRows(x *tensor.Tensor) *tensor.Tensor {
	out := x.Clone()
	out.DType = tensor.F32
	width := len(x.F) / x.Shape[0]
	for at := 0; at < len(out.F); at += width {
		sum := 0.0
		for _, v := range out.F[at : at+width] {
			sum += v * v
		}
		norm := math.Max(math.Sqrt(sum), 1e-12)
		for i := at; i < at+width; i++ {
			out.F[i] = float64(float32(out.F[i] / norm))
		}
	}
	return out
}
