package spec

import (
	"cmp"

	"github.com/iflowc/iflowc/ir/tensor"
)

// latentQueryKeyValue writes the projections of multi-head latent attention
// (DeepSeek-V2, §2.1.2 and 2.1.3). Keys and values are projected from a common
// low-rank vector of each token. The rotary part of the keys is one head, stored
// beside that vector and shared by all heads. The KV cache holds the full keys
// and values.
func (l *lowerer) latentQueryKeyValue(x, rope string) [3]string {
	n, h := l.Net, l.Hyper
	sa := l.s.in("self_attn.")
	var q string
	if l.has(sa + "wq_a.weight") {
		c := l.affine("qa", "wq_a", sa+"wq_a", x)
		c = l.latentNorm("qa", "q_a_norm", c)
		q = l.scaled("q", l.affine("q", "wq_b", sa+"wq_b", c), n.LatentQueryScale)
		if n.indexes(l.at) {
			l.selectRows(x, c, rope)
		}
	} else {
		q = l.affine("q", "wq", sa+"wq", x)
	}
	if rope != ropeNone {
		q = l.t.op("qr", "rope", []string{q, l.cs[rope]}, l.latentRope(h.Heads).int("offset", n.QKNopeHeadDim))
	}

	kv := l.affine("ckv", "wkv_a", sa+"wkv_a", x)
	parts := l.splitInto(kv, []string{"c", "kpe"}, []int{n.KVLoraRank, n.QKRopeHeadDim})
	c, shared := parts[0], parts[1]
	c = l.scaled("c", l.latentNorm("c", "kv_a_norm", c), n.LatentKVScale)
	kv = l.latentKeyValue(sa, c)
	if rope != ropeNone {
		shared = l.t.op("kr", "rope", []string{shared, l.cs[rope]}, l.latentRope(1))
	}
	cols := func(hint string, lo, hi int) string {
		return l.t.op(hint, "head_cols", []string{kv}, attrs{}.int("heads", h.Heads).int("lo", lo).int("hi", hi))
	}
	k := l.t.op("k", "join_heads", []string{cols("kn", 0, n.QKNopeHeadDim), shared}, attrs{}.int("heads", h.Heads))
	v := cols("v", n.QKNopeHeadDim, n.QKNopeHeadDim+n.VHeadDim)
	return [3]string{q, k, v}
}

// latentKeyValue projects keys and values from the low-rank vector c. GGUF files may
// store wkv_b as two matrices: wk_b, transposed in each head, and wv_b. It is then
// concatenated from them: for each head, the rows of its key and those of its value.
func (l *lowerer) latentKeyValue(sa, c string) string {
	if !l.has(sa + "wk_b.weight") {
		return l.affine("kvb", "wkv_b", sa+"wkv_b", c)
	}
	heads, rank, k, v := l.Hyper.Heads, l.Net.KVLoraRank, l.Net.QKNopeHeadDim, l.Net.VHeadDim
	stds := []string{sa + "wk_b.weight", sa + "wv_b.weight"}
	block := l.tensors[layerName(stds[0], l.at)].DType.IsBlock() // a transposed one has other blocks
	w := l.built("wkv_b", stds, []int{heads * (k + v), rank}, block, func(src []*tensor.Transform) *tensor.Transform {
		keys, values := apply("reshape", src[0], heads*rank, k), apply("reshape", src[1], heads*v, rank)
		var parts []*tensor.Transform
		for h := range heads {
			parts = append(parts, apply("transpose", apply("rows", keys, h*rank, (h+1)*rank)), apply("rows", values, h*v, (h+1)*v))
		}
		return concatenated(parts)
	})
	return l.t.op("kvb", "matmul", []string{c, w}, nil)
}

func (l *lowerer) latentRope(heads int) attrs {
	a := attrs{}.int("heads", heads)
	if l.Net.QKColumnOrder != 2 {
		a = a.word("pairs", "adjacent")
	}
	return a
}

// latentNorm normalizes a low-rank vector.
func (l *lowerer) latentNorm(hint, name, x string) string {
	eps := cmp.Or(l.Net.LatentNormEps, l.Net.NormEps)
	std := l.s.in("self_attn." + name)
	return l.normWith(hint, l.normFunction(std), x, l.weight(name, std+".weight", nil), l.weight(name+"_bias", std+".bias", nil), eps, 0, 1)
}
