package spec

import (
	"math"

	"github.com/iflowc/iflowc/ir/tensor"
)

// attendTwice writes differential attention (Ye et al. 2024, §2.1): the heads' halves are
// two attentions over keys of their own and the same values, which join a head of each half.
// Their difference is normed by head.
func (l *lowerer) attendTwice(qkv [3]string) string {
	h := l.Hyper
	half := func(hint, x string, heads, dim int) []string {
		return l.splitInto(x, []string{hint, hint}, []int{heads / 2 * dim, heads / 2 * dim})
	}
	q, k, v := half("qh", qkv[0], h.Heads, h.HeadDim), half("kh", qkv[1], h.KVHeads, h.HeadDim), half("vh", qkv[2], h.KVHeads, h.VDim)
	values := l.t.op("vj", "join_heads", v, attrs{}.int("heads", h.KVHeads/2).int("b_heads", h.KVHeads/2))
	var a [2]string
	l.Hyper.Heads, l.Hyper.KVHeads = h.Heads/2, h.KVHeads/2
	caches := []string{l.cache(false), l.cache(true)}
	for i, kv := range caches {
		l.t.effect("kv_append", []string{kv, k[i], values})
	}
	for i, kv := range caches {
		a[i] = l.t.op("a", "attention", []string{q[i], kv}, l.attentionAttrs())
	}
	l.Hyper = h
	start := 0.8 - 0.6*math.Exp(-0.3*float64(l.at))
	second := l.t.op("a", "add", []string{l.t.op("a", "mul", []string{a[1], l.lambda()}, nil), l.t.op("a", "scale", []string{a[1]}, attrs{}.num("by", start))}, nil)
	d := l.t.op("d", "sub", []string{a[0], second}, nil)
	d = l.normOp("d", "rms", d, "", "", 0, h.Heads/2)
	d = l.t.op("d", "scale", []string{d}, attrs{}.num("by", 1-start))
	wo := l.s.in("self_attn.wo")
	return l.bias("o", "wo_bias", wo, l.linear("o", "wo", wo, d, nil), nil)
}

// lambda declares the part of λ that the layers' parameters make.
func (l *lowerer) lambda() string {
	sa := l.s.in("self_attn.lambda_")
	stds := []string{sa + "q1.weight", sa + "k1.weight", sa + "q2.weight", sa + "k2.weight"}
	return l.built("lambda", stds, []int{1}, true, func(src []*tensor.Transform) *tensor.Transform {
		of := func(op string, args ...*tensor.Transform) *tensor.Transform {
			return &tensor.Transform{Op: op, Args: args}
		}
		return of("sub", of("exp", of("dot", src[0], src[1])), of("exp", of("dot", src[2], src[3])))
	})
}
