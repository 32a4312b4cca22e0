package spec

import (
	"math"
	"slices"
)

// A layerRun is a range of consecutive layers of one structure; their windows may differ.
type layerRun struct {
	lo, hi  int
	rope    string
	scale   float64 // of attention scores; 0: 1/√head_dim
	windows []int   // one per layer
}

func (r layerRun) mixedWindows() bool {
	return slices.ContainsFunc(r.windows, func(w int) bool { return w != r.windows[0] })
}

// runs splits the layers into ranges of equal structure.
func (l *lowerer) runs() []layerRun {
	var out []layerRun
	for i := range l.Hyper.Layers {
		kind, scale := l.ropeKind(i), l.attnScale(i)
		tapped := l.Draft != nil && slices.Contains(l.Draft.Taps, i)
		if n := len(out); n > 0 && !tapped && out[n-1].rope == kind && out[n-1].scale == scale && l.kind(l.s, i) == l.kind(l.s, i-1) {
			out[n-1].hi++
			out[n-1].windows = append(out[n-1].windows, l.windows[i])
			continue
		}
		out = append(out, layerRun{i, i + 1, kind, scale, []int{l.windows[i]}})
	}
	return out
}

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

// layers writes one repeat per run; hint is the name of the results.
func (l *lowerer) layers(hint, x string) string {
	xs := l.openStreams(x)
	for _, run := range l.runs() {
		l.at, l.layersOfRun, l.Hyper = run.lo, run.hi-run.lo, l.sizesAt(l.s, run.lo)
		if l.Draft != nil && slices.Contains(l.Draft.Taps, run.lo) {
			l.tapped[run.lo] = xs[0]
		}
		xs = l.repeat(hint, xs, run, func(xs []string) []string { return l.streamLayer(xs, run) })
	}
	l.at, l.Hyper = 0, l.s.hyper
	return l.closeStreams(xs)
}

// layer writes a layer's one or two parts. Experts of a layer with two parts read what its
// first FFN reads, and their output is added at the end.
func (l *lowerer) layer(x string, run layerRun) string {
	in := x
	x = l.layerPart(x, run)
	if l.Net.convolves(l.s, run.lo) {
		x = l.convolution(in, x)
	}
	if l.Net.LayerParts == 2 {
		l.s.part = secondPart
		x = l.layerPart(x, run)
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
func (l *lowerer) layerPart(x string, run layerRun) string {
	n := l.Net
	if l.s.std == "dec" && len(n.mixers(run.lo)) == 0 {
		return l.onlyFFN(x)
	}
	h := x
	if n.sharedAt(run.lo) {
		h = l.t.op("h", "add", []string{x, l.sharedBlock(x, run)}, nil)
	}
	if n.UseSelfAttnPreNorm {
		h, _ = l.norm("h", "attn_norm", l.s.in("self_attn.pre_norm"), h, n.AttnPreNormBase)
	}
	if l.beside != "" {
		h = l.t.op("h", "concat", []string{l.beside, h}, nil)
	}
	a := l.mix(h, run)
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
	x1 := l.t.op("x1", "add", []string{l.scaled("res", residual, l.mixResidual(run)), a}, nil)
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
	if l.ffnOf(run.lo) == "none" {
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
		f = l.ffn(in)
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
