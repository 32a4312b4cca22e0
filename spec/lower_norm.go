package spec

import "math"

// norm writes a normalization with the tensors std.weight and std.bias and
// reports whether it did: it writes nothing if the model has no such tensors.
// Norms without parameters are always written.
func (l *lowerer) norm(hint, weight, std, x string, base float64) (string, bool) {
	w := l.weight(weight, std+".weight", nil)
	if w == "" && l.Net.NormParameters {
		return x, false
	}
	return l.normOp(hint, l.normFunction(std), x, w, l.weight(weight+"_bias", std+".bias", nil), base, 1), true
}

// normOp writes one normalization op; w and b may be "". A linear norm multiplies
// by the square root of the width (Inferflow, TensorOpr::LinearNorm).
func (l *lowerer) normOp(hint, function, x, w, b string, base float64, heads int) string {
	return l.normWith(hint, function, x, w, b, l.Net.NormEps, base, heads)
}

// normWith is normOp with the given epsilon.
func (l *lowerer) normWith(hint, function, x, w, b string, eps, base float64, heads int) string {
	if function == "linear" {
		return l.scaled(hint, x, math.Sqrt(float64(l.Hyper.Hidden)))
	}
	args := []string{x}
	for _, p := range []string{w, b} {
		if p != "" {
			args = append(args, p)
		}
	}
	a := attrs{}.num("eps", eps)
	if base != 0 {
		a = a.num("base", base)
	}
	if heads > 1 {
		a = a.int("heads", heads)
	}
	op := map[string]string{"rms": "rmsnorm", "std": "layernorm", "l2": "l2norm"}[function]
	return l.t.op(hint, op, args, a)
}

// scaled writes a multiplication by a constant, unless that is 1.
func (l *lowerer) scaled(hint, x string, by float64) string {
	if by == 1 {
		return x
	}
	return l.t.op(hint, "scale", []string{x}, attrs{}.num("by", by))
}

// softcapped writes cap·tanh(x/cap), unless cap is 0.
func (l *lowerer) softcapped(hint, x string, limit float64) string {
	if limit == 0 {
		return x
	}
	return l.t.op(hint, "softcap", []string{x}, attrs{}.num("cap", limit))
}
