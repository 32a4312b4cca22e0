package spec

import (
	"cmp"

	"github.com/iflowc/iflowc/ir/tensor"
)

// mix writes the layer's token mixers on x and adds their outputs.
func (l *lowerer) mix(x string) string {
	n, sum := l.Net, ""
	for _, word := range n.mixers(l.at) {
		var y string
		by := n.AttnOutScale
		if mx := mixerOf(word); mx == nil {
			y = l.attention(l.scaled("h", x, n.AttnInScale))
		} else {
			y = l.mixer(mx, x)
			out, _ := mx.scales(n)
			by = cmp.Or(out, by)
		}
		y = l.outNorm("o", "attn_out_norm", l.s.in("self_attn.out_norm"), y)
		y = l.scaled("o", y, by)
		if sum != "" {
			y = l.t.op("o", "add", []string{sum, y}, nil)
		}
		sum = y
	}
	return sum
}

// mixer writes a token mixer other than attention.
func (l *lowerer) mixer(mx *mixer, x string) string {
	args, named := []string{x}, map[string]any{}
	switch mx.word {
	case "linear":
		args = append(args, l.cs[l.ropeKind(l.at)])
		named["layer"], named["layers"] = l.at, l.s.hyper.Layers
	case "time_mix":
		args = append(args, l.firstValues)
	}
	out := l.call(mx.module, mx.prefix, args, named)
	if mx.word == "time_mix" && l.at == 0 {
		l.firstValues = out[1]
	}
	return out[0]
}

// mixResidual returns the factor on the residual of the layer's token mixer.
func (l *lowerer) mixResidual() float64 {
	for _, word := range l.Net.mixers(l.at) {
		if mx := mixerOf(word); mx != nil {
			_, by := mx.scales(l.Net)
			return cmp.Or(by, l.Net.AttnResidual)
		}
	}
	return l.Net.AttnResidual
}

// built declares a weight that a transform of one or more tensors makes, and returns
// its reference, or "" if the layer does not have the first tensor. The weight has the
// stored type, or a wide one if the transform computes.
func (l *lowerer) built(name string, stds []string, shape []int, computes bool, f func(src []*tensor.Transform) *tensor.Transform) string {
	if !l.has(stds[0]) {
		return ""
	}
	e := l.elementOf(name, stds[0])
	e.shape, e.wide = shape, computes
	var src []*tensor.Transform
	for _, std := range stds {
		t, ok := l.tensors[layerName(std, l.at)]
		if !ok {
			l.fail("tensor %s: missing", layerName(std, l.at))
			return "@" + name
		}
		e.wide, e.block = e.wide || t.DType != e.typ, e.block || t.DType.IsBlock()
		src = append(src, tensor.Source(t.Pattern))
		l.read[std] = true
	}
	e.transform = f(src)
	return l.declare(e)
}

// apply returns a transform of one operand.
func apply(op string, r *tensor.Transform, nums ...int) *tensor.Transform {
	t := &tensor.Transform{Op: op, Args: []*tensor.Transform{r}}
	for _, n := range nums {
		t.Nums = append(t.Nums, float64(n))
	}
	return t
}

// splitInto writes a split of the columns of x.
func (l *lowerer) splitInto(x string, hints []string, sizes []int) []string {
	return l.t.results(hints, "split", []string{x}, attrs{}.ints("sizes", sizes))
}
