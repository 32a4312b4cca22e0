package ops

import (
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Experts is the feed-forward network of a mixture of experts, without router and
// shared expert. Its Eval reads the weights of all experts as one tensor [E, rows,
// columns] or [E, elements].
var Experts = &ir.OpDef{
	Name: "experts",
	Doc: "y[t] = Σ r[t, e] · down_e(h_e(x[t])) over the experts e with r[t, e] ≠ 0, in ascending order. h_e = act(gate_e · x) ⊙ (up_e · x) if gated, " +
		"otherwise act(gate_e · x). swiglu_oai (gpt-oss): g = min(gate_e · x, limit), u = clamp(up_e · x, −limit, limit), h_e = (u + 1) · g · σ(alpha · g). " +
		"With another act and a limit, gate_e · x is at most limit, and up_e · x within ±limit (DeepSeek-V4). " +
		"The weights are gate, up (if gated) and down, followed, if biased, by their biases in the same order. Each bias is added to the result of its matmul, that of down before the multiplication by r. " +
		"Each weight has one more index than is written or implied by regions: the expert, 0 ≤ e < E. " +
		"If x is quantized activations, h_e is quantized to act_type before down.",
	Params: []ir.ParamDef{
		param("x", "f32, a8_b16, a8_b32 or a8_b64 [T, D]", value),
		param("r", "f32[T, E], from route", value),
		variadic(each(param("w", "gate [F, D], up [F, D], down [D, F]; biases [F], [F], [D]", weight))),
	},
	Attrs: []ir.AttrDef{
		{Name: "act", Kind: ir.WordAttr, Words: []string{"silu", "gelu", "gelu_tanh", "relu", "relu2", "swiglu_oai"}, Default: "silu", Doc: "activation"},
		{Name: "gated", Kind: ir.BoolAttr, Doc: "has up weights"},
		{Name: "biased", Kind: ir.BoolAttr, Doc: "has biases"},
		{Name: "scale_input", Kind: ir.BoolAttr, Doc: "r multiplies the input of an expert, not its output: Σ down_e(h_e(r[t, e] · x[t])); not with biased (Llama 4)"},
		{Name: "limit", Kind: ir.FloatAttr, Default: 7.0, Doc: "bound of gate and up; without swiglu_oai: none by default"},
		{Name: "alpha", Kind: ir.FloatAttr, Default: 1.702, Doc: "factor of swiglu_oai"},
		{Name: "act_type", Kind: ir.DTypeAttr, Doc: "type of x if x is quantized: a8_b16, a8_b32 or a8_b64"},
	},
	Traits: ir.RowWise | ir.Root,
	Infer:  inferExperts,
	Eval:   evalExperts,
}

// An ExpertsShape holds the sizes and weights of an experts op. The last six fields are
// indices in Args; 0 means that there is no such weight.
type ExpertsShape struct {
	Experts, Hidden          int // E and F
	Gate, Up, Down           int
	BiasGate, BiasUp, BiasDn int
}

// ExpertsShapeOf returns the shape of an experts op with inferred types.
func ExpertsShapeOf(o *ir.Op) ExpertsShape {
	s := ExpertsShape{Experts: o.Args[1].Type.Cols(), Hidden: o.Args[2].Type.Shape[0].N, Gate: 2, Down: 3}
	if o.Bool("gated") {
		s.Up, s.Down = 3, 4
	}
	if o.Bool("biased") {
		s.BiasGate, s.BiasDn = s.Down+1, s.Down+2
		if o.Bool("gated") {
			s.BiasUp, s.BiasDn = s.Down+2, s.Down+3
		}
	}
	return s
}

func inferExperts(o *ir.Op) ([]ir.Type, error) {
	x, r := o.Args[0], o.Args[1]
	act := x.Type.Elem.IsActivation()
	if !x.Type.IsMatrix() || x.Type.Elem != tensor.F32 && !act {
		return nil, fmt.Errorf("%s is %s, expected f32, a8_b16, a8_b32 or a8_b64 [rows, columns]", x, x.Type)
	}
	route, err := matrix(r)
	if err != nil {
		return nil, err
	}
	if err := sameRows(x, r); err != nil {
		return nil, err
	}
	if act != o.Has("act_type") || act && o.DType("act_type") != x.Type.Elem {
		return nil, fmt.Errorf("act_type must equal the type of quantized x and is not allowed otherwise; %s is %s", x, x.Type)
	}
	if o.Bool("scale_input") && o.Bool("biased") {
		return nil, fmt.Errorf("scale_input cannot be combined with biased")
	}
	if o.Word("act") == "swiglu_oai" && !o.Bool("gated") {
		return nil, fmt.Errorf("act=swiglu_oai requires gated")
	}
	return one(f32(x.Type.Rows(), ir.N(x.Type.Cols())), expertWeights(o, route.Cols()))
}

// expertWeights checks the number, shapes and last indices of the weights.
func expertWeights(o *ir.Op, experts int) error {
	n := 2
	if o.Bool("gated") {
		n++
	}
	if o.Bool("biased") {
		n *= 2
	}
	if len(o.Args) != 2+n {
		return fmt.Errorf("%d weights, expected %d with gated=%v and biased=%v", len(o.Args)-2, n, o.Bool("gated"), o.Bool("biased"))
	}
	if !o.Args[2].Type.IsMatrix() {
		return fmt.Errorf("%s is %s, expected [F, %d]", o.Args[2], o.Args[2].Type, o.Args[0].Type.Cols())
	}
	d, s := o.Args[0].Type.Cols(), ExpertsShapeOf(o)
	if t := o.DType("act_type"); o.Has("act_type") && s.Hidden%t.Block() != 0 {
		return fmt.Errorf("%s has %d rows, which are not whole blocks of %s", o.Args[2], s.Hidden, t)
	}
	for i, a := range o.Args[2:] {
		if len(a.Count) == 0 || a.Count[len(a.Count)-1].Len() != experts {
			return fmt.Errorf("%s needs %d as its last index, the expert", a, experts)
		}
		want := []ir.Size{ir.N(s.Hidden), ir.N(d)}
		switch at := i + 2; {
		case at == s.Down:
			want = []ir.Size{ir.N(d), ir.N(s.Hidden)}
		case at == s.BiasDn:
			want = []ir.Size{ir.N(d)}
		case at > s.Down:
			want = []ir.Size{ir.N(s.Hidden)}
		}
		if t := ir.T(a.Type.Elem, want...); !a.Type.SameShape(t) {
			return fmt.Errorf("%s is %s, expected %s", a, a.Type, t)
		}
	}
	return nil
}

// expertAct maps the words of act to functions of the gate's output. swiglu_oai is not
// such a function.
var expertAct = map[string]func(float64) float64{
	"silu":      func(x float64) float64 { return x * sigmoid(x) },
	"gelu":      func(x float64) float64 { return 0.5 * x * (1 + math.Erf(x/math.Sqrt2)) },
	"gelu_tanh": func(x float64) float64 { return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) },
	"relu":      func(x float64) float64 { return math.Max(x, 0) },
	"relu2":     func(x float64) float64 { return math.Max(x, 0) * math.Max(x, 0) },
}

func evalExperts(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	x, r := in[0], in[1]
	out := tensor.New(tensor.F32, x.Shape...)
	for t := range x.Shape[0] {
		for e, w := range row(r, t) {
			if w == 0 {
				continue
			}
			in1 := row(x, t)
			if o.Bool("scale_input") {
				in1 = slices.Clone(in1)
				scaleBy(in1, w)
				w = 1
			}
			y, err := oneExpert(o, in, e, in1)
			if err != nil {
				return nil, err
			}
			for c, v := range y {
				row(out, t)[c] += w * v
			}
		}
	}
	return []*tensor.Tensor{out}, nil
}

// ExpertLimit returns the bound of gate and up; 0: none.
func ExpertLimit(o *ir.Op) float64 {
	if o.Word("act") != "swiglu_oai" && !o.Has("limit") {
		return 0
	}
	return o.Float("limit")
}

// oneExpert returns the output of expert e for one row.
func oneExpert(o *ir.Op, in []*tensor.Tensor, e int, x []float64) ([]float64, error) {
	s := ExpertsShapeOf(o)
	h := expertLinear(in, s.Gate, s.BiasGate, e, x)
	var up []float64
	if s.Up > 0 {
		up = expertLinear(in, s.Up, s.BiasUp, e, x)
	}
	limit, alpha, f := ExpertLimit(o), o.Float("alpha"), expertAct[o.Word("act")]
	for i, g := range h {
		if f != nil && limit > 0 {
			if g = math.Min(g, limit); up != nil {
				up[i] = math.Min(math.Max(up[i], -limit), limit)
			}
		}
		switch {
		case f == nil:
			g = math.Min(g, limit)
			h[i] = (math.Min(math.Max(up[i], -limit), limit) + 1) * g * sigmoid(alpha*g)
		case up != nil:
			h[i] = f(g) * up[i]
		default:
			h[i] = f(g)
		}
	}
	if o.Has("act_type") {
		if err := Round(o.DType("act_type"), h); err != nil {
			return nil, err
		}
	}
	return expertLinear(in, s.Down, s.BiasDn, e, h), nil
}

// expertLinear returns w_e · x, plus the bias if its index is not 0.
func expertLinear(in []*tensor.Tensor, w, bias, e int, x []float64) []float64 {
	rows := in[w].Shape[1]
	var out []float64
	for i := range rows {
		out = append(out, dot(x, in[w].F[(e*rows+i)*len(x):][:len(x)]))
	}
	if bias > 0 {
		for i, b := range in[bias].F[e*rows:][:rows] {
			out[i] += b
		}
	}
	return out
}
