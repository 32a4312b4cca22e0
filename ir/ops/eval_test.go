package ops_test

import (
	"math"
	"math/cmplx"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// f32 returns a matrix with the given number of columns.
func f32(cols int, f ...float64) *tensor.Tensor {
	return &tensor.Tensor{DType: tensor.F32, Shape: []int{len(f) / cols, cols}, F: f}
}

func vec(f ...float64) *tensor.Tensor {
	return &tensor.Tensor{DType: tensor.F32, Shape: []int{len(f)}, F: f}
}

func ints(f ...float64) *tensor.Tensor {
	return &tensor.Tensor{DType: tensor.I32, Shape: []int{len(f)}, F: f}
}

// A weight marks an argument as a weight instead of a value.
type weight struct{ *tensor.Tensor }

// build returns the op on inputs and weights with the tensors' shapes.
func build(def *ir.OpDef, attrs ir.Attrs, args ...any) (*ir.Op, []*tensor.Tensor, []ir.Type, error) {
	var in []*tensor.Tensor
	var as []ir.Arg
	for _, a := range args {
		v := &ir.Value{Name: "x", Kind: ir.Input}
		t, ok := a.(*tensor.Tensor)
		if w, isWeight := a.(weight); !ok && isWeight {
			v.Kind, t = ir.Weight, w.Tensor
		}
		v.Type.Elem = t.DType
		for _, n := range t.Shape {
			v.Type.Shape = append(v.Type.Shape, ir.N(n))
		}
		in = append(in, t)
		as = append(as, ir.A(v))
	}
	o := &ir.Op{Def: def, Args: as, Attrs: attrs}
	types, err := def.Infer(o)
	return o, in, types, err
}

// apply infers and evaluates an op and checks that the shapes agree.
func apply(t *testing.T, def *ir.OpDef, attrs ir.Attrs, args ...any) []*tensor.Tensor {
	t.Helper()
	o, in, types, err := build(def, attrs, args...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := def.Eval(o, in)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != len(types) {
		t.Fatalf("%s: %d results, inferred %d", def.Name, len(out), len(types))
	}
	for i, x := range out {
		var want []int
		for _, s := range types[i].Shape {
			want = append(want, s.N)
		}
		if !slices.Equal(x.Shape, want) || x.DType != types[i].Elem {
			t.Errorf("%s: result is %s %v, inferred %s", def.Name, x.DType, x.Shape, types[i])
		}
	}
	return out
}

func near(t *testing.T, what string, got *tensor.Tensor, want ...float64) {
	t.Helper()
	if len(got.F) != len(want) {
		t.Fatalf("%s: %v, expected %v", what, got.F, want)
	}
	for i, w := range want {
		if d := math.Abs(got.F[i] - w); !(d <= 1e-12*(1+math.Abs(w))) {
			t.Fatalf("%s: %v, expected %v", what, got.F, want)
		}
	}
}

// attr returns attributes from alternating names and values.
func attr(pairs ...any) ir.Attrs {
	var out ir.Attrs
	for i := 0; i < len(pairs); i += 2 {
		out.Set(pairs[i].(string), pairs[i+1])
	}
	return out
}

// TestActivations compares with tables and with closed forms computed by hand to 16
// digits.
func TestActivations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		def  *ir.OpDef
		x, y float64
	}{
		{ops.Silu, 1, 0.7310585786300049}, {ops.Silu, -1, -0.2689414213699951},
		{ops.Gelu, 1, 0.8413447460685429}, {ops.Gelu, -1, -0.15865525393145707},
		{ops.GeluTanh, 1, 0.8411919906082768}, {ops.QuickGelu, 1, 0.8457957659328212},
		{ops.Relu, -2, 0}, {ops.Relu, 2, 2}, {ops.Relu2, 3, 9}, {ops.Relu2, -3, 0},
		{ops.Sigmoid, 0, 0.5}, {ops.Sigmoid, 2, 0.8807970779778823}, {ops.Tanh, 1, 0.7615941559557649},
		{ops.Elu, -1, -0.6321205588285577}, {ops.Elu, 2, 2},
		{ops.Softplus, 0, math.Ln2}, {ops.Softplus, 800, 800}, {ops.Softplus, -40, 4.248354255291589e-18},
		{ops.Identity, -0.3, -0.3},
	} {
		near(t, c.def.Name, apply(t, c.def, nil, f32(1, c.x))[0], c.y)
	}
	near(t, "softcap", apply(t, ops.Softcap, attr("cap", 30.0), f32(1, 60))[0], 28.920827402274507)
	near(t, "scale", apply(t, ops.Scale, attr("by", -2.0), f32(2, 3, 4))[0], -6, -8)
	near(t, "shift", apply(t, ops.Shift, attr("by", -2.0), f32(2, 3, 4))[0], 1, 2)
	near(t, "clamp", apply(t, ops.Clamp, attr("lo", -1.0, "hi", 2.0), f32(3, -3, 0.5, 4))[0], -1, 0.5, 2)
}

func TestBinary(t *testing.T) {
	t.Parallel()
	a, b, w := f32(2, 1, 2, 3, 4), f32(2, 5, 7, 9, 11), weight{vec(10, 100)}
	near(t, "add", apply(t, ops.Add, nil, a, b)[0], 6, 9, 12, 15)
	near(t, "add a vector", apply(t, ops.Add, nil, a, w)[0], 11, 102, 13, 104)
	near(t, "sub", apply(t, ops.Sub, nil, a, b)[0], -4, -5, -6, -7)
	near(t, "mul", apply(t, ops.Mul, nil, a, w)[0], 10, 200, 30, 400)
	near(t, "div", apply(t, ops.Div, nil, a, w)[0], 0.1, 0.02, 0.3, 0.04)
	near(t, "mul by a weight of one element", apply(t, ops.Mul, nil, a, weight{vec(3)})[0], 3, 6, 9, 12)
	near(t, "sub of a weight of one element", apply(t, ops.Sub, nil, a, weight{vec(3)})[0], -2, -1, 0, 1)
	near(t, "div by a column", apply(t, ops.Div, nil, a, f32(1, 2, 4))[0], 0.5, 1, 0.75, 1)
	near(t, "add of columns", apply(t, ops.Add, nil, f32(1, 1, 2), f32(1, 2, 4))[0], 3, 6)
}

func TestNorms(t *testing.T) {
	t.Parallel()
	x := f32(4, 1, 2, 3, 4)
	r := math.Sqrt(7.5 + 0.5) // mean of squares is 30/4
	eps := attr("eps", 0.5)
	near(t, "rmsnorm", apply(t, ops.RMSNorm, eps, x)[0], 1/r, 2/r, 3/r, 4/r)
	near(t, "rmsnorm with weight and base", apply(t, ops.RMSNorm, attr("eps", 0.5, "base", 1.0), x, weight{vec(0, 1, 2, 3)})[0], 1/r, 4/r, 9/r, 16/r)
	a, b := math.Sqrt(2.5+0.5), math.Sqrt(12.5+0.5)
	near(t, "rmsnorm of heads", apply(t, ops.RMSNorm, attr("eps", 0.5, "heads", 2), x, weight{vec(1, 2)})[0], 1/a, 4/a, 3/b, 8/b)
	s := math.Sqrt(1.25 + 0.5) // variance is 5/4 about 2.5
	near(t, "layernorm", apply(t, ops.LayerNorm, eps, x)[0], -1.5/s, -0.5/s, 0.5/s, 1.5/s)
	near(t, "layernorm with bias", apply(t, ops.LayerNorm, eps, x, weight{vec(1, 2, 3, 4)}, weight{vec(5, 6, 7, 8)})[0], 5-1.5/s, 6-1/s, 7+1.5/s, 8+6/s)
	near(t, "l2norm", apply(t, ops.L2Norm, attr("eps", 6.0), x)[0], 1.0/6, 2.0/6, 3.0/6, 4.0/6)
	near(t, "l2norm of heads", apply(t, ops.L2Norm, attr("eps", 4.0, "heads", 2), x)[0], 1.0/3, 2.0/3, 3/math.Sqrt(29), 4/math.Sqrt(29))
}

// TestRope checks the rotation as a multiplication of complex numbers.
func TestRope(t *testing.T) {
	t.Parallel()
	table := apply(t, ops.RopeTable, attr("dim", 4, "theta", 10000.0), ints(0, 3))[0]
	angles := []float64{3, float64(float32(3) * float32(0.01))}
	near(t, "rope_table", table, 1, 1, 0, 0, math.Cos(angles[0]), math.Cos(angles[1]), math.Sin(angles[0]), math.Sin(angles[1]))

	x := f32(12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 1, 2, 3, 4, 9, 9, 5, 6, 7, 8, 9) // two heads of 6, rotated from column 1
	turn := func(a, b float64, i int) (float64, float64) {
		c := complex(a, b) * cmplx.Exp(complex(0, angles[i]))
		return real(c), imag(c)
	}
	half := apply(t, ops.Rope, attr("heads", 2, "offset", 1), x, table)[0]
	adjacent := apply(t, ops.Rope, attr("heads", 2, "offset", 1, "pairs", "adjacent"), x, table)[0]
	wantHalf, wantAdjacent := slices.Clone(x.F), slices.Clone(x.F)
	for h := range 2 {
		at := 12 + 6*h + 1
		for i := range 2 {
			wantHalf[at+i], wantHalf[at+i+2] = turn(x.F[at+i], x.F[at+i+2], i)
			wantAdjacent[at+2*i], wantAdjacent[at+2*i+1] = turn(x.F[at+2*i], x.F[at+2*i+1], i)
		}
	}
	near(t, "half", half, wantHalf...)
	near(t, "adjacent", adjacent, wantAdjacent...)
}

func TestRopeTableFreqs(t *testing.T) {
	t.Parallel()
	attrs := attr("dim", 2, "freqs", []float64{0.5}, "scale", 2.0, "long_freqs", []float64{0.25}, "long_from", 4, "long_scale", 3.0)
	near(t, "short", apply(t, ops.RopeTable, attrs, ints(3))[0], 2*math.Cos(1.5), 2*math.Sin(1.5))
	near(t, "long", apply(t, ops.RopeTable, attrs, ints(4))[0], 3*math.Cos(1), 3*math.Sin(1))
}

func TestMatmulAndGather(t *testing.T) {
	t.Parallel()
	x, w := f32(3, 1, 2, 3, 4, 5, 6), weight{f32(3, 1, 0, -1, 2, 2, 2)}
	near(t, "matmul", apply(t, ops.Matmul, nil, x, w)[0], -2, 12, -2, 30)
	near(t, "embed", apply(t, ops.Embed, nil, ints(1, 0, 1), w)[0], 2, 2, 2, 1, 0, -1, 2, 2, 2)
	near(t, "rows", apply(t, ops.Rows, nil, x, ints(1))[0], 4, 5, 6)
	o, in, _, err := build(ops.Embed, nil, ints(2), w)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ops.Embed.Eval(o, in); err == nil {
		t.Error("embed of an id outside the table gives no error")
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	parts := apply(t, ops.Split, attr("sizes", []int{1, 2}), f32(3, 1, 2, 3, 4, 5, 6))
	near(t, "split", parts[0], 1, 4)
	near(t, "split", parts[1], 2, 3, 5, 6)
	near(t, "concat", apply(t, ops.Concat, nil, parts[1], parts[0], parts[0])[0], 2, 3, 1, 1, 5, 6, 4, 4)
	turns := apply(t, ops.Split, attr("sizes", []int{3, 3}, "panel", 2), f32(8, 1, 2, 11, 12, 3, 0, 13, 0))
	near(t, "split in turns", turns[0], 1, 2, 3)
	near(t, "split in turns", turns[1], 11, 12, 13)
}

func TestQuantizeAct(t *testing.T) {
	t.Parallel()
	x := make([]float64, 64)
	copy(x, []float64{127, 0.5, 1.5, 2.5, -0.5, -1.5, 0.49, -126.6}) // scale 1: ties go to even codes
	for i := 32; i < 64; i++ {
		x[i] = 0
	}
	x[40], x[41] = 0.0127, -0.0063
	got := apply(t, ops.QuantizeAct, attr("type", tensor.A8B32), f32(64, x...))[0]
	near(t, "first block", &tensor.Tensor{F: got.F[:8]}, 127, 0, 2, 2, 0, -2, 0, -127)
	most := float32(0.0127)
	unit := most / 127
	near(t, "second block", &tensor.Tensor{F: got.F[40:42]}, float64(127*unit), float64(-63*unit))
	one := apply(t, ops.QuantizeAct, attr("type", tensor.A8B64), f32(64, x...))[0]
	near(t, "one block of 64", &tensor.Tensor{F: one.F[40:42]}, 0, 0)
}

func TestSoftmaxArgmaxAndExchange(t *testing.T) {
	t.Parallel()
	near(t, "softmax", apply(t, ops.Softmax, nil, f32(2, 1000, 1000+math.Log(3), 0, 0))[0], 0.25, 0.75, 0.5, 0.5)
	near(t, "mean", apply(t, ops.Reduce, nil, f32(2, 1, 5, -3, 1))[0], 3, -1)
	near(t, "rms", apply(t, ops.Reduce, ir.Attrs{{Name: "kind", Val: "rms"}, {Name: "min", Val: 4.0}}, f32(2, 1, 7, -1, 1))[0], 5, 2)
	near(t, "position_scale", apply(t, ops.PositionScale, ir.Attrs{{Name: "floor", Val: 4}, {Name: "by", Val: 0.5}}, &tensor.Tensor{DType: tensor.I32, Shape: []int{3}, F: []float64{2, 3, 11}})[0], 1, 1+0.5*math.Log(2), 1+0.5*math.Log(4))
	near(t, "argmax", apply(t, ops.Argmax, nil, f32(3, 1, 5, 5, -3, -2, -4))[0], 1, 1)
	a, b := f32(2, 1, 2, 3, 4), f32(2, 10, 20, 30, 40)
	o := &ir.Op{Def: ops.AllReduce}
	sum, err := ops.AllReduce.Eval(o, []*tensor.Tensor{a, b})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "all_reduce", sum[0], 11, 22, 33, 44)
	all, err := ops.AllGather.Eval(o, []*tensor.Tensor{a, b})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "all_gather", all[0], 1, 2, 10, 20, 3, 4, 30, 40)
}
