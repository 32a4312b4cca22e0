package ops

import (
	"math"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// pointwise is the set of traits of elementwise ops.
const pointwise = ir.Elementwise | ir.RowWise | ir.TileLocal

// unary returns the definition of an elementwise op of one argument.
func unary(name, doc, expr string, f func(x float64) float64) *ir.OpDef {
	return unaryAttr(name, doc, expr, nil, func(_ *ir.Op, x float64) float64 { return f(x) })
}

// unaryAttr is unary with attributes.
func unaryAttr(name, doc, expr string, attrs []ir.AttrDef, f func(o *ir.Op, x float64) float64) *ir.OpDef {
	return &ir.OpDef{
		Name: name, Doc: doc, Expr: expr, Attrs: attrs, Traits: pointwise,
		Params: []ir.ParamDef{param("x", "f32[T, D]", value)},
		Infer:  func(o *ir.Op) ([]ir.Type, error) { return one(matrix(o.Args[0])) },
		Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
			out := in[0].Clone()
			for i, x := range out.F {
				out.F[i] = f(o, x)
			}
			return []*tensor.Tensor{out}, nil
		},
	}
}

func number(name, doc string) ir.AttrDef {
	return ir.AttrDef{Name: name, Kind: ir.FloatAttr, Required: true, Doc: doc}
}

// perLayer makes a number attribute accept a list, one number per iteration of a repeat.
func perLayer(d ir.AttrDef) ir.AttrDef { d.Kind = ir.PerLayerFloat; return d }

// Elementwise ops of one argument with attributes.
var (
	Scale = unaryAttr("scale", "y = x · by", "{0} * {by}",
		[]ir.AttrDef{perLayer(number("by", "factor"))},
		func(o *ir.Op, x float64) float64 { return x * o.Float("by") })
	Shift = unaryAttr("shift", "y = x + by", "{0} + {by}",
		[]ir.AttrDef{perLayer(number("by", "summand"))},
		func(o *ir.Op, x float64) float64 { return x + o.Float("by") })
	Softcap = unaryAttr("softcap", "y = cap · tanh(x / cap) (Gemma 2, §2)", "{cap} * ifl_tanh({0} / {cap})",
		[]ir.AttrDef{number("cap", "bound, not 0")},
		func(o *ir.Op, x float64) float64 { return o.Float("cap") * math.Tanh(x/o.Float("cap")) })
	Clamp = unaryAttr("clamp", "y = min(max(x, lo), hi)", "ifl_min(ifl_max({0}, ifl_set1({lo})), ifl_set1({hi}))",
		[]ir.AttrDef{number("lo", "lower bound"), number("hi", "upper bound")},
		func(o *ir.Op, x float64) float64 { return math.Min(math.Max(x, o.Float("lo")), o.Float("hi")) })
)

// Activations.
var (
	Silu = unary("silu", "y = x · σ(x), also called swish", "{0} / (1.0f + ifl_exp(-{0}))",
		func(x float64) float64 { return x * sigmoid(x) })
	Gelu = unary("gelu", "y = x · Φ(x), with the error function", "0.5f * {0} * (1.0f + ifl_erf({0} * 0.70710678f))",
		func(x float64) float64 { return 0.5 * x * (1 + math.Erf(x/math.Sqrt2)) })
	GeluTanh = unary("gelu_tanh", "y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))",
		"0.5f * {0} * (1.0f + ifl_tanh(0.79788456f * ({0} + 0.044715f * {0} * {0} * {0})))",
		func(x float64) float64 { return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) })
	QuickGelu = unary("quick_gelu", "y = x · σ(1.702 x)", "{0} / (1.0f + ifl_exp(-1.702f * {0}))",
		func(x float64) float64 { return x * sigmoid(1.702*x) })
	Relu = unary("relu", "y = max(x, 0)", "ifl_max({0}, ifl_set1(0.0f))",
		func(x float64) float64 { return math.Max(x, 0) })
	Relu2 = unary("relu2", "y = max(x, 0)²", "ifl_max({0}, ifl_set1(0.0f)) * ifl_max({0}, ifl_set1(0.0f))",
		func(x float64) float64 { return math.Max(x, 0) * math.Max(x, 0) })
	Sigmoid = unary("sigmoid", "y = 1 / (1 + exp(-x))", "1.0f / (1.0f + ifl_exp(-{0}))", sigmoid)
	Tanh    = unary("tanh", "y = tanh(x)", "ifl_tanh({0})", math.Tanh)
	Elu     = unary("elu", "y = x for x > 0, else exp(x) − 1", "ifl_max({0}, ifl_set1(0.0f)) + (ifl_exp(ifl_min({0}, ifl_set1(0.0f))) - 1.0f)",
		func(x float64) float64 { return math.Max(x, 0) + math.Expm1(math.Min(x, 0)) })
	Softplus = unary("softplus", "y = log(1 + exp(x))", "ifl_max({0}, ifl_set1(0.0f)) + ifl_log1p(ifl_exp(-ifl_abs({0})))",
		func(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) })
	Identity = unary("identity", "y = x", "{0}", func(x float64) float64 { return x })
)

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
