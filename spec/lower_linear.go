package spec

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
)

func linearMixer() *mixer {
	return &mixer{
		word: "linear", prefix: "linear_attn", required: []string{"wo.weight"},
		shapes: func(m *Model, s *stack, add func(string, ...int)) {
			n := m.Net.Linear.filled()
			add("wo.weight", s.hyper.Hidden, n.Heads*n.ValueDim)
			add("wq.weight", n.KeyHeads*n.KeyDim, s.hyper.Hidden)
			add("wk.weight", n.KeyHeads*n.KeyDim, s.hyper.Hidden)
			add("wv.weight", n.Heads*n.ValueDim, s.hyper.Hidden)
			add("qkv.weight", 2*n.KeyHeads*n.KeyDim+n.Heads*n.ValueDim, s.hyper.Hidden)
			add("qkvz.weight", 2*n.KeyHeads*n.KeyDim+2*n.Heads*n.ValueDim, s.hyper.Hidden)
			add("wb.weight", n.Heads, s.hyper.Hidden)
			add("wba.weight", 2*n.Heads, s.hyper.Hidden)
		},
		check: func(n *Network) error {
			f := n.Linear.filled()
			if err := positive("heads", f.Heads, "key_heads", f.KeyHeads, "key_dim", f.KeyDim, "value_dim", f.ValueDim); err != nil {
				return err
			}
			if f.Heads%f.KeyHeads != 0 {
				return fmt.Errorf("heads %d, want a multiple of key_heads %d", f.Heads, f.KeyHeads)
			}
			return nil
		},
		write:  (*lowerer).linearAttention,
		scales: func(n *Network) (float64, float64) { return n.Linear.OutScale, n.Linear.Residual },
	}
}

// filled returns the description with the sizes that follow from others.
func (n LinearAttention) filled() LinearAttention {
	n.KeyHeads, n.ValueDim = cmp.Or(n.KeyHeads, n.Heads), cmp.Or(n.ValueDim, n.KeyDim)
	n.Scale = cmp.Or(n.Scale, 1/math.Sqrt(float64(n.KeyDim)))
	return n
}

// linearAttention writes linear attention: projections, convolution, the recurrence,
// and the gated norm of its output.
func (l *lowerer) linearAttention(x string) string {
	n, la := l.Net.Linear.filled(), l.s.in("linear_attn.")
	qkv := l.linearProjection(x, n)
	switch {
	case l.has(la + "conv.weight"):
		qkv = l.convolved("linear", "qkv", qkv, []string{la + "conv"}, nil)
	case l.has(la + "q_conv.weight"):
		qkv = l.convolved("linear", "qkv", qkv, []string{la + "q_conv", la + "k_conv", la + "v_conv"}, nil)
	}
	if n.Act != "none" {
		qkv = l.activationOp(n.Act, qkv)
	}
	keys, values := n.KeyHeads*n.KeyDim, n.Heads*n.ValueDim
	parts := l.splitInto(qkv, []string{"q", "k", "v"}, []int{keys, keys, values})
	for i, which := range []string{"q", "k"} {
		parts[i] = l.linearNorm(parts[i], which, n)
		if n.Rope {
			parts[i] = l.rope(which+"r", parts[i], l.ropeKind(l.at), n.KeyHeads)
		}
		if per := n.Heads / n.KeyHeads; n.Order == "tiled" && per > 1 {
			parts[i] = l.t.op(which, "concat", slices.Repeat(parts[i:i+1], per), nil)
		}
	}
	state := l.fixed("linear", "s", n.Heads, n.KeyDim, n.ValueDim)
	args := append([]string{state}, parts...)
	a := attrs{}.int("heads", n.Heads)
	if n.KeyHeads != n.Heads && n.Order == "grouped" {
		a = a.int("key_heads", n.KeyHeads)
	}
	a = l.fixedDecay(a, n)
	if n.Decay == "head" || n.Decay == "channel" {
		args, a = append(args, l.linearDecay(x, n)), a.word("decay", n.Decay)
	}
	if beta := l.linearBeta(x, n); beta != "" {
		args, a = append(args, beta), a.flag("beta")
	}
	if n.DeltaRule {
		a = a.word("delta", "rule")
	}
	y := l.t.op("y", "linear_recurrence", args, a.num("scale", n.Scale))
	y = l.gatedNorm(la, y, l.linearGate(x, n), &n.Norm, n.Heads, values)
	return l.affine("o", "linear_wo", la+"wo", y)
}

// linearProjection writes queries, keys and values as one matmul, in this order.
func (l *lowerer) linearProjection(x string, n LinearAttention) string {
	la := l.s.in("linear_attn.")
	k, v := n.KeyDim, n.Heads/n.KeyHeads*n.ValueDim // rows of a key head
	stds, rows := []string{la + "wq", la + "wk", la + "wv"}, []int{n.KeyHeads * k, n.KeyHeads * k, n.KeyHeads * v}
	group := 0 // rows of a key head in a fused matrix
	switch {
	case l.has(la + "qkv.weight"):
		stds, group = []string{la + "qkv"}, 2*k+v
	case l.has(la + "qkvz.weight"):
		stds, group = []string{la + "qkvz"}, 2*k+2*v
	}
	build := func(src []*tensor.Transform) *tensor.Transform {
		switch {
		case group == 0 && rows[0] != rows[2]: // the rows do not follow from their sum
			for i := range src {
				src[i] = apply("rows", src[i], 0, rows[i])
			}
		case group > 0 && n.Layout == "heads":
			at := func(lo, hi int) *tensor.Transform { return apply("group_rows", src[0], n.KeyHeads, group, lo, hi) }
			src = []*tensor.Transform{at(0, k), at(k, 2*k), at(2*k, 2*k+v)}
		case group > 2*k+v:
			src[0] = apply("rows", src[0], 0, n.KeyHeads*(2*k+v))
		}
		return concatenated(src)
	}
	all := rows[0] + rows[1] + rows[2]
	w := l.built("linear_qkv", withSuffix(stds, ".weight"), []int{all, l.Hyper.Hidden}, false, build)
	if w == "" {
		l.fail("tensor %sweight: missing; want linear_attn.wq, wk and wv, or qkv, or qkvz", layerName(la+"wq.", l.at))
		return x
	}
	y := l.t.op("qkv", "matmul", []string{x, w}, nil)
	if b := l.built("linear_qkv_bias", withSuffix(stds, ".bias"), []int{all}, false, build); b != "" {
		y = l.t.op("qkv", "add", []string{y, b}, nil)
	}
	return y
}

// linearNorm normalizes the heads of queries or keys.
func (l *lowerer) linearNorm(x, which string, n LinearAttention) string {
	eps := cmp.Or(n.QKNormEps, l.Net.NormEps)
	switch n.QKNorm {
	case "l2":
		return l.normWith(which+"n", "l2", x, "", "", eps, 0, n.KeyHeads)
	case "rms":
		w := l.weight("linear_"+which+"_norm", l.s.in("linear_attn."+which+"_norm.weight"), nil)
		return l.normWith(which+"n", "rms", x, w, "", eps, 0, n.KeyHeads)
	}
	return x
}

// fixedDecay adds the attributes of a decay that does not depend on the input.
func (l *lowerer) fixedDecay(a attrs, n LinearAttention) attrs {
	var slopes []float64
	switch n.Decay {
	case "alibi":
		slopes = alibiSlopes(n.Heads, -1)
	case "geometric":
		for h := range n.Heads {
			slopes = append(slopes, -math.Exp2(-8*float64(h+1)/float64(n.Heads)))
		}
	case "retention":
		for h := range n.Heads {
			slopes = append(slopes, math.Log1p(-math.Exp2(float64(-5-h))))
		}
	default:
		return a
	}
	a = a.word("decay", "fixed").nums("slopes", slopes)
	if !n.ByLayer {
		return a
	}
	return a.num("slope_scale", 1-float64(l.at-n.First)/(float64(l.Hyper.Layers-1)+1e-5)+1e-5)
}

// linearDecay writes the logarithm of the decay of each head or key channel.
func (l *lowerer) linearDecay(x string, n LinearAttention) string {
	la, cols, repeat := l.s.in("linear_attn."), n.Heads, 1
	if n.Decay == "channel" {
		cols, repeat = n.Heads*n.KeyDim, n.KeyDim
	}
	d := l.lowRank("d", "wa", x)
	if d == "" {
		d = l.linearHalf("d", "linear_wa", x, 1, n)
	}
	if dt := l.weight("linear_dt", la+"dt.bias", nil); dt != "" {
		d = l.t.op("d", "add", []string{d, dt}, nil)
	}
	if n.DecayForm == "sigmoid" {
		d = l.t.op("d", "mul", []string{d, l.decayRate("linear_a", la+"a_log", []int{cols}, 1, repeat)}, nil)
		return l.scaled("d", l.t.op("d", "sigmoid", []string{d}, nil), n.Bound)
	}
	d = l.t.op("d", "softplus", []string{d}, nil)
	return l.t.op("d", "mul", []string{d, l.decayRate("linear_a", la+"a_log", []int{cols}, -1, repeat)}, nil)
}

// linearBeta writes the strength of writing, or returns "" if the model has none.
func (l *lowerer) linearBeta(x string, n LinearAttention) string {
	la := l.s.in("linear_attn.")
	b := ""
	switch {
	case l.has(la + "wb.weight"):
		b = l.affine("b", "linear_wb", la+"wb", x)
	case l.has(la + "wba.weight"):
		b = l.linearHalf("b", "linear_wb", x, 0, n)
	default:
		return ""
	}
	return l.scaled("b", l.t.op("b", "sigmoid", []string{b}, nil), n.BetaScale)
}

// linearHalf projects x by a half of wba, which stores the matrices of beta and of the
// decay: one after the other, or by key head.
func (l *lowerer) linearHalf(hint, name, x string, half int, n LinearAttention) string {
	std, per := l.s.in("linear_attn.wba"), n.Heads/n.KeyHeads
	if !l.has(std + ".weight") {
		l.fail("tensor %s.weight: missing; want linear_attn.wa or wba", layerName(std, l.at))
		return x
	}
	c := rowsCut(half*n.Heads, (half+1)*n.Heads)
	if cmp.Or(n.GateLayout, n.Layout) == "heads" {
		c = groupCut(n.KeyHeads, 2*per, half*per, (half+1)*per)
	}
	return l.linear(hint, name, std, x, c)
}

// linearGate projects the gate of the output, or returns "" if the model has none.
func (l *lowerer) linearGate(x string, n LinearAttention) string {
	std := l.s.in("linear_attn.qkvz")
	if !l.has(std + ".weight") {
		return l.lowRank("z", "wg", x)
	}
	k, v := n.KeyDim, n.Heads/n.KeyHeads*n.ValueDim
	c := rowsCut(n.KeyHeads*(2*k+v), n.KeyHeads*(2*k+2*v))
	if n.Layout == "heads" {
		c = groupCut(n.KeyHeads, 2*k+2*v, 2*k+v, 2*k+2*v)
	}
	return l.linear("z", "linear_wg", std, x, c)
}

// lowRank projects x by a matrix of linear_attn, which may be stored as the product of
// two, NAME_b·NAME_a. It returns "" if the model has neither.
func (l *lowerer) lowRank(hint, name, x string) string {
	std := l.s.in("linear_attn." + name)
	switch {
	case l.has(std + ".weight"):
		return l.affine(hint, "linear_"+name, std, x)
	case l.has(std + "_a.weight"):
		x = l.affine(hint, "linear_"+name+"_a", std+"_a", x)
		return l.affine(hint, "linear_"+name+"_b", std+"_b", x)
	}
	return ""
}
