package spec

import (
	"cmp"
	"math"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

func timeMixer() *mixer {
	return &mixer{
		word: "time_mix", prefix: "time_mix", fused: "shift",
		required: []string{"wr.weight", "wk.weight", "wv.weight", "wo.weight", "w_a.weight", "w_b.weight", "a_a.weight", "a_b.weight", "g_a.weight", "g_b.weight",
			"shift_r.weight", "shift_w.weight", "shift_k.weight", "shift_v.weight", "shift_a.weight", "shift_g.weight", "k_k.weight", "k_a.weight", "r_k.weight", "norm.weight"},
		shapes: func(_ *Model, s *stack, add func(string, ...int)) { add("shift.weight", 6, 1, 1, s.hyper.Hidden) },
		check:  func(n *Network) error { return positive("head_dim", n.TimeMix.HeadDim) },
		write:  (*lowerer).timeMix, scales: noScales,
	}
}

// timeMixHeads returns the number of heads of a layer's time mixing.
func (l *lowerer) timeMixHeads() int {
	rows, dim := l.tensors[layerName(l.s.in("time_mix.wr.weight"), l.at)].Shape[0], l.Net.TimeMix.HeadDim
	if rows%dim != 0 || rows != l.Hyper.Hidden {
		l.fail("network_structure.time_mix: %d channels, want hidden_size %d, a multiple of head_dim %d", rows, l.Hyper.Hidden, dim)
		return 1
	}
	return rows / dim
}

// timeMix writes RWKV-7's time mixing (Peng et al. 2025, §4): linear attention whose
// state is decayed per channel and of which a removal key takes out what it held.
func (l *lowerer) timeMix(x string) string {
	heads, dim, tm := l.timeMixHeads(), l.Net.TimeMix.HeadDim, l.s.in("time_mix.")
	op := func(hint, name string, args ...string) string { return l.t.op(hint, name, args, nil) }
	shifted := l.t.op("sh", "token_shift", []string{l.fixed("time_shift", "x", l.Hyper.Hidden), x}, nil)
	delta := op("sh", "sub", shifted, x)
	mixed := func(name string) string {
		return op("h"+name, "add", x, op("h"+name, "mul", delta, l.timeShift(name)))
	}
	r := l.affine("r", "time_mix_wr", tm+"wr", mixed("r"))
	k := l.affine("k", "time_mix_wk", tm+"wk", mixed("k"))
	hv := mixed("v")
	v := l.firstValue(l.affine("v", "time_mix_wv", tm+"wv", hv), hv)
	w := op("w", "sigmoid", l.lora("w", "w", mixed("w"), "tanh"))
	w = l.scaled("w", w, -math.Exp(-0.5))
	a := op("ia", "sigmoid", l.lora("ia", "a", mixed("a"), ""))
	g := l.lora("g", "g", mixed("g"), "sigmoid")

	remove := op("kk", "mul", k, l.vector("time_mix_k_k", tm+"k_k.weight"))
	remove = l.t.op("kk", "l2norm", []string{remove}, attrs{}.num("eps", 1e-24).int("heads", heads))
	// The removal key applies to the state before its decay, and the op's argument to
	// the decayed one. exp(w) = elu(w) + 1, since w is negative.
	decay := l.t.op("ew", "shift", []string{op("ew", "elu", w)}, attrs{}.num("by", 1))
	erase := l.scaled("er", op("er", "div", remove, decay), -1)
	write := op("wr", "mul", remove, a)
	by := l.t.op("ka", "shift", []string{a}, attrs{}.num("by", -1))
	by = l.t.op("ka", "shift", []string{op("ka", "mul", by, l.vector("time_mix_k_a", tm+"k_a.weight"))}, attrs{}.num("by", 1))
	k = op("k", "mul", k, by)
	state := l.fixed("time_mix", "s", heads, dim, dim)
	y := l.t.op("y", "linear_recurrence", []string{state, r, k, v, w, erase, write}, attrs{}.int("heads", heads).word("decay", "channel").word("delta", "vectors"))
	y = l.gatedNorm(tm, y, "", &GatedNorm{Groups: heads, Function: "std", Gate: "none", Eps: cmp.Or(l.Net.TimeMix.NormEps, float64(dim)*l.Net.NormEps)}, heads, heads*dim)
	bonus := op("bo", "mul", op("bo", "mul", r, k), l.vector("time_mix_r_k", tm+"r_k.weight"))
	bonus = l.t.op("bo", "matmul", []string{bonus, l.headSum("time_mix_ones", tm+"r_k.weight", dim)}, attrs{}.int("slices", heads))
	y = op("y", "add", y, op("bo", "mul", bonus, v))
	return l.affine("o", "time_mix_wo", tm+"wo", op("y", "mul", y, g))
}

// timeShift declares the factors with which the token before is mixed into an input.
// They may be stored together, in the order r, w, k, v, a, g (GGUF).
func (l *lowerer) timeShift(name string) string {
	std, n := l.s.in("time_mix.shift"), l.Hyper.Hidden
	if !l.has(std + ".weight") {
		return l.vector("time_mix_shift_"+name, std+"_"+name+".weight")
	}
	i := strings.Index("rwkvag", name)
	return l.built("time_mix_shift_"+name, []string{std + ".weight"}, []int{n}, false, func(src []*tensor.Transform) *tensor.Transform {
		return apply("rows", apply("reshape", src[0], 6*n), i*n, (i+1)*n)
	})
}

// firstValue mixes the values with those of the first layer, by a factor projected from
// x. The first layer has no such projection, and keeps its values.
func (l *lowerer) firstValue(v, x string) string {
	if !l.has(l.s.in("time_mix.v_a.weight")) {
		l.firstValues = v
		return v
	}
	by := l.t.op("vf", "sigmoid", []string{l.lora("vf", "v", x, "")}, nil)
	d := l.t.op("vf", "sub", []string{l.firstValues, v}, nil)
	return l.t.op("v", "add", []string{v, l.t.op("vf", "mul", []string{d, by}, nil)}, nil)
}

// lora writes a low-rank projection with an activation in the middle.
func (l *lowerer) lora(hint, name, x, act string) string {
	std := l.s.in("time_mix." + name)
	x = l.affine(hint, "time_mix_"+name+"_a", std+"_a", x)
	if act != "" {
		x = l.t.op(hint, act, []string{x}, nil)
	}
	return l.affine(hint, "time_mix_"+name+"_b", std+"_b", x)
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

// headSum declares a square matrix of ones, which replaces the channels of a head by
// their sum. Its ones are computed from a stored tensor, since a weight has a source.
func (l *lowerer) headSum(name, std string, n int) string {
	all := l.tensors[layerName(std, l.at)].elements()
	return l.built(name, []string{std}, []int{n, n}, true, func(src []*tensor.Transform) *tensor.Transform {
		one := apply("exp", apply("scale", apply("rows", apply("reshape", src[0], all), 0, 1), 0))
		return apply("reshape", apply("fill", one, n*n), n, n)
	})
}
