package spec

import (
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// activations maps the values of activation_function (without glu_) to ops.
var activations = map[string]string{
	"sigmoid": "sigmoid", "elu": "elu", "relu": "relu", "gelu": "gelu_tanh", "gelu_erf": "gelu", "silu": "silu",
	"quick_gelu": "quick_gelu", "relu2": "relu2", "tanh": "tanh", "identity": "identity",
}

// ffn writes the feed-forward network: w2·act(w1·x), or with a gate
// w2·(act(w1·x) ⊙ w3·x). w1 and w3 may be stored as one matrix.
func (l *lowerer) ffn(x string) string {
	ff := l.s.in("feed_forward.")
	x = l.shiftedFFN(x)
	var h string
	switch {
	case l.has(ff + "w1n3.weight"):
		h = l.packedFFN(x, ff+"w1n3", 0)
	case l.has(ff + "w3n1.weight"):
		h = l.packedFFN(x, ff+"w3n1", 1)
	case l.packedGate():
		h = l.packedFFN(x, ff+"w1", 0)
	case l.has(ff + "w3.weight"):
		gate := l.linear("gate", "w_gate", ff+"w1", x, nil)
		up := l.linear("up", "w_up", ff+"w3", x, nil)
		gate = l.sparseGate(l.bias("gate", "w_gate_bias", ff+"w1", gate, nil))
		up = l.bias("up", "w_up_bias", ff+"w3", up, nil)
		h = l.gated(gate, up)
	default:
		up := l.linear("up", "w_up", ff+"w1", x, nil)
		up = l.bias("up", "w_up_bias", ff+"w1", up, nil)
		h = l.activation(up)
	}
	h = l.outNorm("g", "ffn_sub_norm", ff+"sub_norm", h)
	d := l.linear("down", "w_down", ff+"w2", h, nil)
	return l.bias("down", "w_down_bias", ff+"w2", d, nil)
}

// shiftedFFN mixes the input with that of the token before, by a stored factor for each
// channel, if the model has these (RWKV: Peng et al. 2023, §3.1.2).
func (l *lowerer) shiftedFFN(x string) string {
	std := l.s.in("feed_forward.shift.weight")
	if !l.has(std) {
		return x
	}
	before := l.t.op("sh", "token_shift", []string{l.fixed("ffn_shift", "x", l.Hyper.Hidden), x}, nil)
	delta := l.t.op("sh", "mul", []string{l.t.op("sh", "sub", []string{before, x}, nil), l.vector("ffn_shift", std)}, nil)
	return l.t.op("m", "add", []string{x, delta}, nil)
}

// packedFFN writes a gated FFN with gate and up in one matrix. The gate's rows are the
// first half or, if second is 1, the second.
func (l *lowerer) packedFFN(x, std string, second int) string {
	halves := []*cut{rowsCut(0, l.Hyper.FFN), rowsCut(l.Hyper.FFN, 2*l.Hyper.FFN)}
	ofGate, ofUp := halves[second], halves[1-second]
	gate := l.linear("gate", "w_gate", std, x, ofGate)
	up := l.linear("up", "w_up", std, x, ofUp)
	gate = l.bias("gate", "w_gate_bias", std, gate, ofGate)
	up = l.bias("up", "w_up_bias", std, up, ofUp)
	return l.gated(gate, up)
}

func (l *lowerer) gated(gate, up string) string {
	return l.t.op("g", "mul", []string{l.activation(l.scaled("gate", gate, l.Net.FFNGateScale)), up}, nil)
}

func (l *lowerer) activation(x string) string {
	if l.Net.ActivationFunction == "xielu" {
		return l.xielu(x)
	}
	return l.activationOp(l.Net.ActivationFunction, x)
}

func (l *lowerer) activationOp(name, x string) string {
	name = strings.TrimPrefix(name, "glu_")
	op, ok := activations[name]
	if !ok {
		panic("bug: no op for activation_function " + name)
	}
	return l.t.op("act", op, []string{x}, nil)
}

// xieluBeta is the slope of xIELU at 0 in the published models.
const xieluBeta = 0.5

// xielu writes xIELU (Huang and Schlag 2024, arXiv:2411.13010) with the layer's
// own parameters αp and αn, which are stored as the inverse of softplus. The
// function is αp·x² + β·x above 0 and αn·(eˣ − 1 − x) + β·x below, where αn is β
// plus a softplus. In terms of elu it is
// β·elu(x) + αp·relu(x)² + (αn − β)·(elu(x) − x).
func (l *lowerer) xielu(x string) string {
	factor := func(name string) string {
		std := l.s.in("feed_forward." + name + ".weight")
		return l.weight(name, std, &cut{rows: l.Hyper.FFN, wide: true, apply: func(r *tensor.Transform) *tensor.Transform {
			r = &tensor.Transform{Op: "fill", Args: []*tensor.Transform{r}, Nums: []float64{float64(l.Hyper.FFN)}}
			return &tensor.Transform{Op: "softplus", Args: []*tensor.Transform{r}}
		}})
	}
	e := l.t.op("e", "elu", []string{x}, nil)
	square := l.t.op("act", "mul", []string{l.t.op("act", "relu2", []string{x}, nil), factor("act_p")}, nil)
	below := l.t.op("act", "mul", []string{l.t.op("act", "sub", []string{e, x}, nil), factor("act_n")}, nil)
	y := l.t.op("act", "add", []string{l.scaled("act", e, xieluBeta), square}, nil)
	return l.t.op("act", "add", []string{y, below}, nil)
}

// vector declares a tensor of any shape as a vector.
func (l *lowerer) vector(name, std string) string {
	t, ok := l.tensors[layerName(std, l.at)]
	if !ok {
		l.fail("tensor %s: missing", layerName(std, l.at))
		return "@" + name
	}
	return l.weight(name, std, rowVectorOf(t))
}
