package spec

import (
	"fmt"
	"math"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// minSquare is the lower bound of a stream's mean square where streams are scaled to the
// magnitude of the first one.
const minSquare = 1e-5

// openStreams makes the residual streams from the token embeddings: the embeddings
// themselves, and projections of them with the same magnitude.
func (l *lowerer) openStreams(x string) []string {
	out := []string{x}
	if n := l.Net.AltUp.Streams; n > 1 && l.s.std == "dec" {
		magnitude := l.rms(x, 0)
		for j := range n - 1 {
			y := l.t.op("s0", "matmul", []string{x, l.streamWeight("altup_in", "dec.altup.in", j)}, nil)
			out = append(out, l.withMagnitude(y, magnitude))
		}
	}
	return out
}

// closeStreams makes the value in front of the final norm: the mean of the first stream
// and of projections of the others with its magnitude.
func (l *lowerer) closeStreams(xs []string) string {
	sum := xs[0]
	if len(xs) == 1 {
		return sum
	}
	magnitude := l.rms(sum, 0)
	for j, x := range xs[1:] {
		y := l.t.op("s1", "matmul", []string{x, l.streamWeight("altup_out", "dec.altup.out", j)}, nil)
		sum = l.t.op("xn", "add", []string{sum, l.withMagnitude(y, magnitude)}, nil)
	}
	return l.scaled("xn", sum, 1/float64(len(xs)))
}

func (l *lowerer) rms(x string, least float64) string {
	a := attrs{}.word("kind", "rms")
	if least > 0 {
		a = a.num("min", least)
	}
	return l.t.op("rms", "reduce", []string{x}, a)
}

// withMagnitude scales each row to a root mean square.
func (l *lowerer) withMagnitude(x, rms string) string {
	factor := l.t.op("rms", "div", []string{rms, l.rms(x, minSquare)}, nil)
	return l.t.op("s0", "mul", []string{x, factor}, nil)
}

// streamWeight declares the matrices of the streams after the first as one array, and
// returns the reference to one of them. GGUF files store them in one tensor, of which each
// weight is a part.
func (l *lowerer) streamWeight(name, std string, j int) string {
	if t, ok := l.tensors[std+".weight"]; ok {
		n := l.Hyper.Hidden
		return l.built(fmt.Sprintf("%s_%d", name, j), []string{std + ".weight"}, []int{n, n}, t.DType.IsBlock(), func(src []*tensor.Transform) *tensor.Transform {
			return apply("rows", apply("reshape", src[0], (l.Net.AltUp.Streams-1)*n, n), j*n, (j+1)*n)
		})
	}
	t, ok := l.tensors[fmt.Sprintf("%s.%d.weight", std, j)]
	if !ok {
		l.fail("tensor %s.%d.weight: missing; network_structure.altup has %d streams", std, j, l.Net.AltUp.Streams)
		return "@" + name
	}
	return l.declare(&element{name: name, std: std + ".{j}.weight", layer: j, layered: true, typ: t.DType, block: t.DType.IsBlock(), shape: t.Shape,
		transform: tensor.Source(strings.ReplaceAll(t.Pattern, "{j}", "{i}"))})
}

// modalities writes the router of the alternating updates: one number in −1…1 for each
// stream.
func (l *lowerer) modalities(x string) string {
	std := l.s.in("altup.router_norm")
	h := l.normOp("mod", l.normFunction(std), x, l.weight("altup_norm", std+".weight", nil), "", 0, 1)
	h = l.linear("mod", "w_altup_router", l.s.in("altup.router"), l.scaled("mod", h, l.Net.AltUp.RouterScale), nil)
	return l.t.op("mod", "tanh", []string{h}, nil)
}

// columns splits a value into its columns.
func (l *lowerer) columns(hint, x string, n int) []string {
	hints, sizes := make([]string, n), make([]int, n)
	for i := range n {
		hints[i], sizes[i] = hint, 1
	}
	return l.splitInto(x, hints, sizes)
}

// predicted writes the prediction of all streams: each plus a mixture of all, with
// coefficients that are computed from the active one.
func (l *lowerer) predicted(xs []string) []string {
	n := len(xs)
	coefs := l.columns("c", l.linear("pc", "w_altup_predict", l.s.in("altup.predict"), l.modalities(xs[l.Net.AltUp.Active]), nil), n*n)
	out := make([]string, n)
	for j := range n {
		out[j] = xs[j]
		for i, x := range xs {
			out[j] = l.t.op("p", "add", []string{out[j], l.t.op("p", "mul", []string{x, coefs[j*n+i]}, nil)}, nil)
		}
	}
	return out
}

// corrected adds to each predicted stream its part of what the layer, with output y, adds
// to the active one.
func (l *lowerer) corrected(predictions []string, y string) []string {
	n := len(predictions)
	change := l.t.op("in", "sub", []string{y, predictions[l.Net.AltUp.Active]}, nil)
	c := l.linear("cc", "w_altup_correct", l.s.in("altup.correct"), l.modalities(y), nil)
	coefs := l.columns("c", l.t.op("cc", "shift", []string{c}, attrs{}.num("by", 1)), n)
	out := make([]string, n)
	for j, p := range predictions {
		out[j] = l.t.op("y", "add", []string{p, l.t.op("y", "mul", []string{change, coefs[j]}, nil)}, nil)
	}
	return out
}

// streamLayer writes a layer on residual streams. What it adds from its own embedding
// goes to all streams but the first.
func (l *lowerer) streamLayer(xs []string) []string {
	switch {
	case l.Net.Streams.Count > 0:
		return []string{l.streamedLayer(xs[0])}
	case len(xs) == 1:
		return []string{l.layer(xs[0])}
	}
	p := l.predicted(xs)
	out := l.corrected(p, l.layer(p[l.Net.AltUp.Active]))
	if l.perLayerInput == "" {
		return out
	}
	active := out[l.Net.AltUp.Active]
	if std := l.s.in("altup.out_scale.weight"); l.Net.AltUp.OutScale {
		active = l.t.op("y", "mul", []string{active, l.weight("altup_scale", std, nil)}, nil)
	} else {
		l.read[std] = true // stored, and not used
	}
	add := l.perLayerOutput(active)
	for j := range out[1:] {
		out[j+1] = l.t.op("y", "add", []string{out[j+1], add}, nil)
	}
	return out
}

// laurel adds to the sum of residual and attention a low-rank map of attention's input h,
// and h itself, and divides by √2, if the model has it (Menghani et al. 2024, LAuReL).
func (l *lowerer) laurel(h, x string) string {
	std := l.s.in("laurel.")
	if !l.has(std + "a.weight") {
		return x
	}
	y := l.linear("la", "w_laurel_b", std+"b", l.linear("la", "w_laurel_a", std+"a", h, nil), nil)
	y, _ = l.norm("la", "laurel_norm", std+"norm", y, 0)
	y = l.t.op("la", "add", []string{h, y}, nil)
	return l.scaled("x1", l.t.op("x1", "add", []string{x, y}, nil), math.Sqrt(0.5))
}
