package pack

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

func op(name string, nums []float64, args ...*tensor.Transform) *tensor.Transform {
	return &tensor.Transform{Op: name, Nums: nums, Args: args}
}

func quantizeTo(dt tensor.DType, a *tensor.Transform) *tensor.Transform {
	return &tensor.Transform{Op: "quantize", Type: dt, Args: []*tensor.Transform{a}}
}

func permute(heads float64, a *tensor.Transform) *tensor.Transform {
	return &tensor.Transform{Op: "permute_rows", Word: "gguf_rope", Nums: []float64{heads}, Args: []*tensor.Transform{a}}
}

func TestTransformOperations(t *testing.T) {
	t.Parallel()
	s := openSource(t, checkpointtest.Ramp("a", 0, 2, 3), checkpointtest.Ramp("b", 10, 1, 3), checkpointtest.Ramp("v", 0, 4), checkpointtest.Ramp("w", 4, 2), checkpointtest.Ramp("h", 0, 8, 1), checkpointtest.Ramp("layer.7.x.2", 5, 1, 2), checkpointtest.Ramp("e", 0, 4, 2, 1))
	a, b, v, w, h := tensor.Source("a"), tensor.Source("b"), tensor.Source("v"), tensor.Source("w"), tensor.Source("h")
	for _, c := range []struct {
		transform  *tensor.Transform
		rows, cols int
		want       []float32
	}{
		{a, 2, 3, []float32{0, 1, 2, 3, 4, 5}},
		{v, 1, 4, []float32{0, 1, 2, 3}},
		{op("concat", nil, a, b, a), 5, 3, []float32{0, 1, 2, 3, 4, 5, 10, 11, 12, 0, 1, 2, 3, 4, 5}},
		{op("concat", nil, v, w), 1, 6, []float32{0, 1, 2, 3, 4, 5}},
		{op("rows", []float64{1, 2}, a), 1, 3, []float32{3, 4, 5}},
		{op("rows", []float64{1, 3}, v), 1, 2, []float32{1, 2}},
		{op("rows", []float64{1, 3}, op("concat", nil, a, b)), 2, 3, []float32{3, 4, 5, 10, 11, 12}},
		{op("cols", []float64{1, 3}, a), 2, 2, []float32{1, 2, 4, 5}},
		{op("transpose", nil, a), 3, 2, []float32{0, 3, 1, 4, 2, 5}},
		{op("reshape", []float64{3, 2}, a), 3, 2, []float32{0, 1, 2, 3, 4, 5}},
		{op("reshape", []float64{6}, a), 1, 6, []float32{0, 1, 2, 3, 4, 5}},
		{op("reshape", []float64{2, 2}, v), 2, 2, []float32{0, 1, 2, 3}},
		{op("scale", []float64{2}, v), 1, 4, []float32{0, 2, 4, 6}},
		{op("add", []float64{1}, a), 2, 3, []float32{1, 2, 3, 4, 5, 6}},
		{op("sub", nil, a, op("scale", []float64{3}, a)), 2, 3, []float32{0, -2, -4, -6, -8, -10}},
		{op("sub", nil, v, op("add", []float64{1}, v)), 1, 4, []float32{-1, -1, -1, -1}},
		{op("exp", nil, op("rows", []float64{0, 2}, v)), 1, 2, []float32{1, 2.7182817}},
		{op("dot", nil, v, op("add", []float64{1}, v)), 1, 1, []float32{20}},
		{tensor.Source("layer.{2*i-7}.x.{j*1}"), 1, 2, []float32{5, 6}},
		{op("group_rows", []float64{2, 4, 1, 3}, h), 4, 1, []float32{1, 2, 5, 6}},
		{op("repeat_rows", []float64{2}, op("rows", []float64{0, 2}, h)), 4, 1, []float32{0, 0, 1, 1}},
		{permute(2, h), 8, 1, []float32{0, 2, 1, 3, 4, 6, 5, 7}},
		{permute(1, v), 1, 4, []float32{0, 2, 1, 3}},
		{op("rows", []float64{1, 3}, tensor.Source("e")), 4, 1, []float32{2, 3, 4, 5}},
		{op("concat", nil, op("rows", []float64{3, 4}, tensor.Source("e")), op("rows", []float64{0, 1}, tensor.Source("e"))), 4, 1, []float32{6, 7, 0, 1}},
		{permute(1, tensor.Source("e")), 8, 1, []float32{0, 1, 4, 5, 2, 3, 6, 7}},
		{op("part_rows", []float64{4}, tensor.Source("e")), 2, 1, []float32{4, 5}},
		{op("part_rows", []float64{4}, op("scale", []float64{1}, tensor.Source("e"))), 2, 1, []float32{4, 5}},
		{op("part_cols", []float64{3}, a), 2, 1, []float32{2, 5}},
		{op("rows", []float64{1, 2}, op("reshape", []float64{2, 2, 2}, h)), 2, 2, []float32{4, 5, 6, 7}},
		{tensor.Source("layer.{i}.x.{j}"), 1, 2, []float32{5, 6}},
	} {
		d, err := Eval(s, c.transform, []int{7, 2})
		if err != nil {
			t.Errorf("%s: %v", c.transform, err)
			continue
		}
		if got := d.Float32(); d.Rows != c.rows || d.Cols != c.cols || !slices.Equal(got, c.want) {
			t.Errorf("%s: [%d, %d] %v, want [%d, %d] %v", c.transform, d.Rows, d.Cols, got, c.rows, c.cols, c.want)
		}
	}
}

func TestInterleavePadsToPanels(t *testing.T) {
	t.Parallel()
	s := openSource(t, checkpointtest.Ramp("a", 1, 18, 1), checkpointtest.Ramp("b", 101, 18, 1))
	d, err := Eval(s, op("interleave", nil, tensor.Source("a"), tensor.Source("b")), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := d.Float32()
	if len(got) != 64 {
		t.Fatalf("%d rows, want 64", len(got))
	}
	for r, x := range got {
		at, want := r/32*16+r%16, float32(0)
		if at < 18 {
			want = float32(at + 1 + r/16%2*100)
		}
		if x != want {
			t.Errorf("row %d is %v, want %v", r, x, want)
		}
	}
}

func TestL2NormRows(t *testing.T) {
	t.Parallel()
	s := openSource(t, checkpointtest.Ramp("a", -4, 3, 5), checkpointtest.Ramp("z", 0, 1, 1))
	d, err := Eval(s, op("l2norm_rows", nil, tensor.Source("a")), nil)
	if err != nil {
		t.Fatal(err)
	}
	x := d.Float32()
	for r := range 3 {
		sum := 0.0
		for _, v := range x[5*r : 5*r+5] {
			sum += float64(v) * float64(v)
		}
		if math.Abs(sum-1) > 1e-6 {
			t.Errorf("row %d has norm² %v", r, sum)
		}
	}
	d, err = Eval(s, op("l2norm_rows", nil, tensor.Source("z")), nil)
	if err != nil || d.Float32()[0] != 0 {
		t.Errorf("a row of zeros: %v, %v", d, err)
	}
}

// Reordering rows of a stored quantized matrix and quantizing to the lossless
// type keeps every value.
func TestQuantizedRowsStayExact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ stored, compute tensor.DType }{
		{tensor.GQ4_1, tensor.Q4B32}, {tensor.GQ4_0, tensor.Q4B32}, {tensor.GQ8_0, tensor.Q8B32T2},
	} {
		q, k := checkpointtest.Quantized("q", c.stored, 32, 64), checkpointtest.Quantized("k", c.stored, 16, 64)
		s := sourceOf(t, "m.gguf", checkpointtest.GGUF(nil, q, k))
		plain := op("concat", nil, permute(4, tensor.Source("q")), permute(2, tensor.Source("k")))
		want, err := Eval(s, plain, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want.DType != c.stored {
			t.Errorf("concat of %s rows gives %s", c.stored, want.DType)
		}
		got, err := Eval(s, quantizeTo(c.compute, plain), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.DType != c.compute || !slices.Equal(got.Float32(), want.Float32()) {
			t.Errorf("%s to %s changed values", c.stored, c.compute)
		}
		// Row 1 of head 0 in half-split order is stored row 2.
		if stored := checkpointtest.DecodeAll(t, c.stored, q.Raw[2*c.stored.RowBytes(64):3*c.stored.RowBytes(64)]); !slices.Equal(got.Float32()[64:128], stored) {
			t.Errorf("%s: the rows are in the wrong order", c.stored)
		}
	}
}

func TestMixedTypesAreDecoded(t *testing.T) {
	t.Parallel()
	q, f := checkpointtest.Quantized("q", tensor.GQ4_0, 2, 32), checkpointtest.Ramp("f", 0, 1, 32)
	s := sourceOf(t, "m.gguf", checkpointtest.GGUF(nil, q, f))
	d, err := Eval(s, op("concat", nil, tensor.Source("q"), tensor.Source("f")), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := append(checkpointtest.DecodeAll(t, tensor.GQ4_0, q.Raw), checkpointtest.DecodeAll(t, tensor.F32, f.Raw)...)
	if d.DType != tensor.F32 || !slices.Equal(d.Float32(), want) {
		t.Error("values changed")
	}
	d, err = Eval(s, op("cols", []float64{3, 20}, tensor.Source("q")), nil)
	if err != nil || !slices.Equal(d.Float32()[:17], want[3:20]) {
		t.Error("columns within a block", err)
	}
}

// A row that is no whole number of blocks: the padding must not widen the last
// block's range.
func TestQuantizePartialBlock(t *testing.T) {
	t.Parallel()
	s := openSource(t, checkpointtest.Ramp("a", 1000, 3, 40))
	d, err := Eval(s, quantizeTo(tensor.Q8B32, tensor.Source("a")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d.Cols != 40 || d.RowBytes() != 2*tensor.Q8B32.BlockBytes() || len(d.Bytes()) != 3*d.RowBytes() {
		t.Fatalf("%d columns in %d bytes", d.Cols, d.RowBytes())
	}
	for i, x := range d.Float32() {
		if e := math.Abs(float64(x) - float64(1000+i)); e > 0.6 {
			t.Errorf("element %d is %v", i, x)
		}
	}
}

func TestTransformErrors(t *testing.T) {
	t.Parallel()
	s := openSource(t, checkpointtest.Ramp("model.a", 0, 2, 3), checkpointtest.Ramp("b", 0, 1, 2), checkpointtest.Ramp("v", 0, 4), checkpointtest.Ramp("c", 0, 2, 2, 2), checkpointtest.Ramp("e", 0, 1<<60, 0))
	a, v, c := tensor.Source("model.a"), tensor.Source("v"), tensor.Source("c")
	nan := math.NaN()
	for want, r := range map[string]*tensor.Transform{
		`did you mean "model.a"?`: tensor.Source("model.x"),
		"is empty":                tensor.Source("e"),
		"j is index number 2, but there are only 1 here": tensor.Source("m.{i}.{j}"),
		"unknown operation":   op("weight", nil),
		"rows of 3 and of 2":  op("concat", nil, a, tensor.Source("b")),
		"range 1 to 9 of 2":   op("rows", []float64{1, 9}, a),
		"range 2 to 1 of 2":   op("rows", []float64{2, 1}, a),
		"range NaN to 1":      op("rows", []float64{nan, 1}, a),
		"range 0.5 to 1":      op("cols", []float64{0.5, 1}, a),
		"expected a matrix":   op("transpose", nil, v),
		"do not have shape":   op("reshape", []float64{4, 2}, a),
		"shape [1e+300":       op("reshape", []float64{1e300, 1e300}, a),
		"not 3 heads":         permute(3, v),
		"not 0 heads":         permute(0, v),
		"not NaN heads":       permute(nan, v),
		"not 3 groups of 1":   op("group_rows", []float64{3, 1, 0, 1}, v),
		"cannot be quantized": quantizeTo(tensor.GQ4_0, a),
		"with 0 arguments":    op("scale", []float64{1}),
		"3 dimensions":        op("interleave", nil, c, c),
		"not 3 equal parts":   op("part_rows", []float64{3}, a),
		"no part of 2":        op("part_rows", []float64{2}, op("rows", []float64{0, 2}, v)),
		"2 rows and 1 rows":   op("interleave", nil, op("cols", []float64{0, 2}, a), tensor.Source("b")),
		"operands of 2 by 3":  op("sub", nil, a, op("transpose", nil, a)),
		"two vectors":         op("dot", nil, a, v),
		"unknown permutation": {Op: "permute_rows", Word: "x", Nums: []float64{1}, Args: []*tensor.Transform{a}},
	} {
		_, err := Eval(s, r, []int{4})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want …%s…", r, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error of several lines: %v", r, err)
		}
	}
}

// A Dense is used by several goroutines at once.
func TestDenseIsConcurrent(t *testing.T) {
	t.Parallel()
	s := openSource(t, checkpointtest.Ramp("a", 0, 64, 96))
	d, err := Eval(s, quantizeTo(tensor.Q4B32, op("scale", []float64{0.5}, tensor.Source("a"))), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := d.Bytes()
	done := make(chan bool)
	for range 4 {
		go func() { done <- bytes.Equal(d.Bytes(), want) }()
	}
	for range 4 {
		if !<-done {
			t.Error("different bytes")
		}
	}
	if slices.Max(want) == 0 {
		t.Error(fmt.Sprint("all zero: ", len(want)))
	}
}
