package spec

import (
	"cmp"
	"strings"

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
			y = mx.write(l, x)
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

// convolved writes a short convolution of the rows of x, with the stored kernels of
// consecutive columns and their biases. Kernels are stored as [D, 1, W], [D, W] or
// [1, D, 1, W].
func (l *lowerer) convolved(word, hint, x string, kernels []string, factor func(r *tensor.Transform) *tensor.Transform) string {
	cols, taps := 0, 0
	for _, std := range kernels {
		s := l.tensors[layerName(std+".weight", l.at)].Shape
		if len(s) < 2 || taps > 0 && s[len(s)-1] != taps {
			l.fail("tensor %q: shape %v, want [columns, 1, taps] with as many taps as the other kernels have", l.tensors[layerName(std+".weight", l.at)].File, s)
			return x
		}
		taps = s[len(s)-1]
		cols += l.tensors[layerName(std+".weight", l.at)].elements() / taps
	}
	if taps == 1 {
		l.fail("tensor %q: a convolution with one tap is a factor for each column; want two taps or more", l.tensors[layerName(kernels[0]+".weight", l.at)].File)
		return x
	}
	name := strings.TrimSuffix(word, "_conv") + "_conv"
	state := l.fixed(name, "x", taps-1, cols)
	w := l.built(name, withSuffix(kernels, ".weight"), []int{taps, cols}, true, func(src []*tensor.Transform) *tensor.Transform {
		for i := range src {
			src[i] = apply("reshape", src[i], l.tensors[layerName(kernels[i]+".weight", l.at)].elements()/taps, taps)
		}
		r := concatenated(src)
		if factor != nil {
			r = factor(r)
		}
		return apply("transpose", r)
	})
	args := []string{state, x, w}
	if b := l.built(name+"_bias", withSuffix(kernels, ".bias"), []int{cols}, false, concatenated); b != "" {
		args = append(args, b)
	}
	return l.t.op(hint, "short_conv", args, nil)
}

func withSuffix(names []string, suffix string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = n + suffix
	}
	return out
}

func concatenated(src []*tensor.Transform) *tensor.Transform {
	if len(src) == 1 {
		return src[0]
	}
	return &tensor.Transform{Op: "concat", Args: src}
}

// decayRate declares the rates by which states decay, −exp(A_log), or exp(A_log) with
// sign 1. Each is repeated for the given number of columns.
func (l *lowerer) decayRate(name, std string, shape []int, sign, repeat int) string {
	return l.built(name, []string{std + ".weight"}, shape, true, func(src []*tensor.Transform) *tensor.Transform {
		n := shape[0] / repeat
		r := src[0]
		if t := l.tensors[layerName(std+".weight", l.at)]; len(t.Shape) != len(shape) {
			r = apply("reshape", r, append([]int{n}, shape[1:]...)...)
		}
		if l.Net.StoredDecay == "log" {
			r = apply("exp", r)
		} else {
			sign = -sign
		}
		if sign < 0 {
			r = apply("scale", r, -1)
		}
		if repeat > 1 {
			r = apply("repeat_rows", r, repeat)
		}
		return r
	})
}

// splitInto writes a split of the columns of x.
func (l *lowerer) splitInto(x string, hints []string, sizes []int) []string {
	var names []string
	for _, h := range hints {
		names = append(names, l.t.fresh(h))
	}
	l.t.add(names, "split", []string{x}, attrs{}.ints("sizes", sizes))
	return names
}

// gatedNorm writes the norm of a mixer's output y and its gate z. By default the norm
// covers slices of the given number.
func (l *lowerer) gatedNorm(prefix, y, z string, g *GatedNorm, slices, width int) string {
	gated := func(y string) string {
		if g.Gate == "none" || z == "" {
			return y
		}
		return l.t.op("y", "mul", []string{y, l.activationOp(g.Gate, z)}, nil)
	}
	if g.Position == "before_norm" {
		y = gated(y)
	}
	std := prefix + "norm"
	if t, ok := l.tensors[layerName(std+".weight", l.at)]; ok {
		n, eps := cmp.Or(g.Groups, slices), cmp.Or(g.Eps, l.Net.NormEps)
		short := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(prefix, l.s.in("")), "."), ".", "_")
		w, b := l.weight(short+"_norm", std+".weight", rowVectorOf(t)), l.weight(short+"_norm_bias", std+".bias", nil)
		if t.elements()*n == width || n == 1 {
			y = l.normWith("y", g.Function, y, w, b, eps, 0, n)
		} else {
			y = l.t.op("y", "mul", []string{l.normWith("y", g.Function, y, "", "", eps, 0, n), w}, nil)
			if b != "" {
				y = l.t.op("y", "add", []string{y, b}, nil)
			}
		}
	}
	if g.Position == "after_norm" {
		y = gated(y)
	}
	return y
}

// elements returns the number of elements of a tensor.
func (t Tensor) elements() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// rowVectorOf returns the cut that reshapes a tensor to a vector; nil for a vector.
func rowVectorOf(t Tensor) *cut {
	if len(t.Shape) == 1 {
		return nil
	}
	return rowVector(t.elements())
}
