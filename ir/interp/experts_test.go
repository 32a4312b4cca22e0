package interp_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// TestExpertsOfGptOss checks the experts of gpt-oss, stored as one tensor of all experts
// with gate and up interleaved, against transformers.
func TestExpertsOfGptOss(t *testing.T) {
	t.Parallel()
	m := parse(t, `module m {
weight @g[1, 2] : f32[2, 2] from group_rows(transpose(reshape(part_rows("gate_up", 2), 2, 4)), 2, 2, 0, 1)
weight @u[1, 2] : f32[2, 2] from group_rows(transpose(reshape(part_rows("gate_up", 2), 2, 4)), 2, 2, 1, 2)
weight @d[1, 2] : f32[2, 2] from transpose(reshape(part_rows("down", 2), 2, 2))
weight @bg[1, 2] : f32[2] from group_rows(reshape(part_rows("gate_up_bias", 2), 4), 2, 2, 0, 1)
weight @bu[1, 2] : f32[2] from group_rows(reshape(part_rows("gate_up_bias", 2), 4), 2, 2, 1, 2)
weight @bd[1, 2] : f32[2] from reshape(part_rows("down_bias", 2), 2)
graph g (T tokens) {
input %x : f32[T, 2]
input %r : f32[T, 2]
%y = experts %x, %r, @g[0], @u[0], @d[0], @bg[0], @bu[0], @bd[0] {act=swiglu_oai, gated, biased}
yield %y
}
}
`)
	ramp := func(scale, from float64, shape ...int) *tensor.Tensor {
		x := tensor.New(tensor.F32, shape...)
		for i := range x.F {
			x.F[i] = float64(i)*scale + from
		}
		return x
	}
	stored := map[string]*tensor.Tensor{
		"gate_up": ramp(0.25, -1.5, 2, 2, 4), "gate_up_bias": ramp(0.125, -0.5, 2, 4), "down": ramp(0.5, -1, 2, 2, 2),
		"down_bias": {DType: tensor.F32, Shape: []int{2, 2}, F: []float64{0.25, -0.5, 1, 0.75}},
	}
	w := interp.NewWeights(m, func(name string) (*tensor.Tensor, error) {
		if x := stored[name]; x != nil {
			return x, nil
		}
		return nil, fmt.Errorf("no tensor %q", name)
	})
	mat := func(f ...float64) *tensor.Tensor { return &tensor.Tensor{DType: tensor.F32, Shape: []int{2, 2}, F: f} }
	step := interp.Step{Pos: []int{0, 1}, Extra: map[string]*tensor.Tensor{"x": mat(1, -2, 6, 5), "r": mat(0.25, 0.75, 0, 1)}}
	got := run(t, m, step, w, nil)
	same(t, "experts", got.F, []float64{0.921392858, 0.594127476, 168.998871, 224.748505}, 1e-4)
}

const mixture = `module m {
weight @up[1..3, 3] : f16[64, 32] from "l.{i}.e.{j}.up"
weight @gate[1..3, 3] : f16[64, 32] from "l.{i}.e.{j}.gate"
weight @down[1..3, 3] : f16[32, 64] from "l.{i}.e.{j}.down"
graph g (T tokens) {
input %x : f32[T, 32]
input %r : f32[T, 3]
%y = repeat 1..3 (%c = %x) {
%z = EXPERTS
yield %z
}
yield %y
}
}
`

// TestExpertsAreMatmuls checks that experts equals the weighted sum of each expert's
// matmuls.
func TestExpertsAreMatmuls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ act, experts, plain string }{
		{"silu", "experts %c, %r, @gate, @up, @down {gated}", "%h = mul %s, %u"},
		{"gelu", "experts %c, %r, @gate, @up, @down {act=gelu, gated}", "%h = mul %s, %u"},
		{"gelu_tanh", "experts %c, %r, @gate, @up, @down {act=gelu_tanh, gated}", "%h = mul %s, %u"},
		{"relu", "experts %c, %r, @gate, @down {act=relu}", "%h = identity %s"},
		{"silu", "experts %q, %r, @gate, @up, @down {gated, act_type=a8_b32}", "%h0 = mul %s, %u\n%h = quantize_act %h0 {type=a8_b32}"},
	} {
		text := strings.Replace(mixture, "%z = EXPERTS", "%z = "+c.experts, 1)
		rounded := strings.Contains(c.experts, "%q")
		if rounded {
			text = strings.Replace(text, "%z =", "%q = quantize_act %c {type=a8_b32}\n%z =", 1)
		}
		m := parse(t, text)
		w := random(t, m)
		x, r := noise(4, 3, 32), &tensor.Tensor{DType: tensor.F32, Shape: []int{3, 3}, F: []float64{0.25, 0, 0.5, 0, 0, 1, -0.5, 2, 0.125}}
		got := run(t, m, interp.Step{Pos: []int{0, 1, 2}, Extra: map[string]*tensor.Tensor{"x": x, "r": r}}, w, nil)
		want := x
		for layer := 1; layer < 3; layer++ {
			sum := tensor.New(tensor.F32, 3, 32)
			for e := range 3 {
				y := oneExpert(t, m, w, c.act, c.plain, rounded, []int{layer, e}, want)
				for i := range sum.F {
					sum.F[i] += r.F[i/32*3+e] * y.F[i]
				}
			}
			want = sum
		}
		same(t, c.experts, got.F, want.F, 1e-12)
	}
}

// oneExpert runs the network of one expert with plain ops.
func oneExpert(t *testing.T, m *ir.Module, w interp.Weights, act, plain string, rounded bool, index []int, x *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	round := "identity %x"
	if rounded {
		round = "quantize_act %x {type=a8_b32}"
	}
	one, err := ir.Parse("one.ir", []byte(`module one {
weight @gate : f16[64, 32] from "gate"
weight @up : f16[64, 32] from "up"
weight @down : f16[32, 64] from "down"
graph g (T tokens) {
input %x : f32[T, 32]
%q = `+round+`
%g = matmul %q, @gate
%u = matmul %q, @up
%s = `+act+` %g
`+plain+`
%y = matmul %h, @down
yield %y
}
}
`), ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, one, interp.Step{Pos: make([]int, 3), Extra: map[string]*tensor.Tensor{"x": x}}, interp.NewWeights(one, func(name string) (*tensor.Tensor, error) {
		return w.Weight(m.Weight(name), index)
	}), nil)
}

// TestSwigluLimit checks the limit of swiglu_oai by hand: gate is clamped above, up on
// both sides.
func TestSwigluLimit(t *testing.T) {
	t.Parallel()
	m := parse(t, `module m {
weight @one[1] : f32[1, 1] from "one"
weight @big[1] : f32[1, 1] from "big"
graph g (T tokens) {
input %x : f32[T, 1]
input %r : f32[T, 1]
%y = experts %x, %r, @one, @big, @one {act=swiglu_oai, gated, limit=2, alpha=0.5}
yield %y
}
}
`)
	w := interp.NewWeights(m, func(name string) (*tensor.Tensor, error) {
		return &tensor.Tensor{DType: tensor.F32, Shape: []int{1, 1}, F: []float64{map[string]float64{"one": 1, "big": 10}[name]}}, nil
	})
	col := func(f ...float64) *tensor.Tensor {
		return &tensor.Tensor{DType: tensor.F32, Shape: []int{len(f), 1}, F: f}
	}
	got := run(t, m, interp.Step{Pos: []int{0, 1, 2}, Extra: map[string]*tensor.Tensor{"x": col(3, -3, 0.1), "r": col(1, 2, 3)}}, w, nil)
	glu := func(g float64) float64 { return g / (1 + math.Exp(-0.5*g)) }
	same(t, "limits", got.F, []float64{3 * glu(2), -2 * glu(-3), 3 * 2 * glu(0.1)}, 1e-6)
}
