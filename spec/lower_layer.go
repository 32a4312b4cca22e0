package spec

import (
	"math"
	"slices"
)

// attnScale returns the factor on a layer's scores; 0 means 1/√head_dim.
func (l *lowerer) attnScale(layer int) float64 {
	scale := l.Net.AttnScale
	if rs := l.Net.RopeScaling; l.Net.AttnScaleYarn && scale == 0 && rs.scales() && rs.MScaleAllDim != 0 {
		m := yarnScale(rs.Factor, rs.MScaleAllDim)
		scale = m * m / math.Sqrt(float64(l.Hyper.HeadDim))
	}
	if n := len(l.Net.PosAttention); n > 0 && scale == 0 { // of the sum of 1 + n products
		scale = 1 / math.Sqrt(float64(l.Hyper.HeadDim*(1+n)))
	}
	if !l.Net.AttnInverseLayer {
		return scale
	}
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(l.Hyper.HeadDim))
	}
	return scale / float64(layer+1)
}

// layers writes the layers.
func (l *lowerer) layers(x string) string {
	xs := l.openStreams(x)
	for i := range l.Hyper.Layers {
		l.at, l.Hyper = i, l.sizesAt(l.s, i)
		if l.Draft != nil && slices.Contains(l.Draft.Taps, i) {
			l.tapped[i] = xs[0]
		}
		l.t.begin(i)
		xs = l.streamLayer(xs)
		l.t.end()
	}
	l.at, l.Hyper = 0, l.s.hyper
	return l.closeStreams(xs)
}

// layer writes a layer's one or two parts. Experts of a layer with two parts read what its
// first FFN reads, and their output is added at the end.
func (l *lowerer) layer(x string) string {
	in := x
	x = l.layerPart(x)
	if l.Net.convolves(l.s, l.at) {
		x = l.convolution(in, x)
	}
	if l.Net.LayerParts == 2 {
		l.s.part = secondPart
		x = l.layerPart(x)
		l.s.part = ""
	}
	if l.shortcut != "" {
		x = l.t.op("x3", "add", []string{x, l.shortcut}, nil)
		l.shortcut = ""
	}
	return x
}

// layerPart writes a token mixer and an FFN with their norms and residual additions.
// Either of them may be missing.
func (l *lowerer) layerPart(x string) string {
	n := l.Net
	if l.s.std == "dec" && len(n.mixers(l.at)) == 0 {
		return l.onlyFFN(x)
	}
	h := x
	if n.sharedAt(l.at) {
		h = l.t.op("h", "add", []string{x, l.sharedBlock(x)}, nil)
	}
	if n.UseSelfAttnPreNorm {
		h, _ = l.norm("h", "attn_norm", l.s.in("self_attn.pre_norm"), h, n.AttnPreNormBase)
	}
	if l.beside != "" {
		h = l.t.op("h", "concat", []string{l.beside, h}, nil)
	}
	a := l.mix(h)
	if n.IsParallelAttn || n.MLPAttnShareInput {
		in := h
		if n.MLPAttnShareInput {
			in, _ = l.norm("m", "ffn_norm", l.s.in("feed_forward.pre_norm"), x, n.FFNPreNormBase)
		}
		f := l.scaledFFN(in, x)
		x1 := l.t.op("x1", "add", []string{x, a}, nil)
		return l.layerEnd(l.t.op("x2", "add", []string{x1, f}, nil))
	}
	residual := x
	if n.ResidualNormed {
		residual = h
	}
	x1 := l.t.op("x1", "add", []string{l.scaled("res", residual, l.mixResidual()), a}, nil)
	x1 = l.laurel(h, x1)
	in := x1
	if post, ok := l.postNorm("p", "attn_post_norm", l.s.in("self_attn.post_norm"), x1); ok {
		in = post
		if n.IsAttnPostAsResidual {
			x1 = post
		}
	}
	if second := l.s.in("self_attn.second_post_norm"); l.has(second + ".weight") { // of the sum with the layer's input once more
		sum := l.t.op("x1", "add", []string{residual, in}, nil)
		x1, _ = l.postNorm("p", "attn_second_post_norm", second, sum)
		in = x1
	}
	if l.crosses() {
		x1 = l.cross(x1)
		in = x1
	}
	if l.ffnOf(l.at) == "none" {
		return l.layerEnd(x1)
	}
	m, normed := l.norm("m", "ffn_norm", l.s.in("feed_forward.pre_norm"), in, n.FFNPreNormBase)
	if normed && n.ResidualNormed {
		x1 = m
	}
	residual = l.scaled("res", x1, n.FFNResidual)
	x2 := l.t.op("x2", "add", []string{residual, l.scaledFFN(m, x1)}, nil)
	x2, _ = l.postNorm("x2", "ffn_post_norm", l.s.in("feed_forward.post_norm"), x2)
	return l.layerEnd(x2)
}

// onlyFFN writes a layer without a token mixer. Its norm may have the name of either.
func (l *lowerer) onlyFFN(x string) string {
	m, ok := l.norm("m", "ffn_norm", l.s.in("feed_forward.pre_norm"), x, l.Net.FFNPreNormBase)
	if !ok {
		m, _ = l.norm("m", "attn_norm", l.s.in("self_attn.pre_norm"), x, l.Net.AttnPreNormBase)
	}
	x = l.scaled("res", x, l.Net.FFNResidual)
	return l.layerEnd(l.t.op("x2", "add", []string{x, l.scaledFFN(m, x)}, nil))
}

// scaledFFN writes the layer's FFN, its experts or both, on the normed input. Experts may
// read the residual stream through a norm of their own.
func (l *lowerer) scaledFFN(in, residual string) string {
	f, experts := "", l.has(l.s.in("moe.gate.weight"))
	if l.hasDense(l.at) || l.s.std == "enc" && l.Net.decodes() {
		f = l.call("ffn", "feed_forward", []string{in}, nil)[0]
		f = l.outNorm("f", "dense_out_norm", l.s.in("feed_forward.dense_out_norm"), f)
	}
	switch {
	case experts && f == "":
		f = l.experts(in, residual)
	case experts && l.Net.LayerParts == 2:
		l.shortcut = l.experts(in, residual)
	case experts:
		f = l.t.op("f", "add", []string{f, l.experts(in, residual)}, nil)
	}
	f = l.outNorm("f", "ffn_out_norm", l.s.in("feed_forward.out_norm"), f)
	return l.scaled("f", f, l.Net.FFNOutScale)
}

// postNorm writes a norm after a residual addition, if the model has its tensor.
func (l *lowerer) postNorm(hint, weight, std, x string) (string, bool) {
	if !l.has(std + ".weight") {
		return x, false
	}
	return l.norm(hint, weight, std, x, 0)
}

// outNorm writes a norm on the output of attention or FFN, if the model has its tensor.
func (l *lowerer) outNorm(hint, weight, std, x string) string {
	if !l.has(std + ".weight") {
		return x
	}
	y, _ := l.norm(hint, weight, std, x, l.Net.SubNormBase)
	return y
}
