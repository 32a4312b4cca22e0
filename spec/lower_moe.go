package spec

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// experts writes a mixture of experts: routing by the gate's logits, the routed
// experts and the shared expert. Router and experts may have norms of their own, on the
// residual stream.
func (l *lowerer) experts(x, residual string) string {
	moe, routed := l.s.in("moe."), x
	if std := moe + "gate_norm"; l.has(std + ".weight") {
		routed = l.normOp("rn", l.normFunction(std), residual, l.weight("router_norm", std+".weight", l.scaledVector(std+".weight", l.Net.MoEGateScale)), "", 0, 1)
	}
	if std := moe + "pre_norm"; l.has(std + ".weight") {
		x, _ = l.norm("m", "moe_norm", std, residual, l.Net.FFNPreNormBase)
	}
	logits := l.linear("rl", "w_router", moe+"gate", routed, l.expertRows())
	logits = l.bias("rl", "w_router_bias", moe+"gate", logits, l.expertRows())
	r := l.route(logits)
	if l.Net.MoENormTopKProb && l.Net.MoENormPower == 2 {
		r = l.t.op("r", "l2norm", []string{r}, nil)
	}
	if scale := l.weight("w_expert_scale", moe+"expert_scale.weight", l.expertRows()); scale != "" {
		r = l.t.op("r", "mul", []string{r, scale}, nil)
	}
	same := ""
	if n := l.Net.MoEZeroExperts; n > 0 {
		parts := l.splitInto(r, []string{"r", "rz"}, []int{l.Net.ExpertCount, n})
		r = parts[0]
		same = l.t.op("same", "mul", []string{x, l.scaled("rz", l.t.op("rz", "reduce", []string{parts[1]}, nil), float64(n))}, nil)
	}
	y := l.bias("f", "moe_out_bias", moe+"out", l.latentExperts(x, r), nil)
	if same != "" {
		y = l.t.op("f", "add", []string{y, same}, nil)
	}
	if l.has(moe + "shared_expert.w2.weight") {
		y = l.t.op("f", "add", []string{y, l.sharedExpert(x)}, nil)
	}
	return l.outNorm("f", "moe_out_norm", moe+"out_norm", y)
}

// route writes the routing by the gate's logits, or by the token's id if the layer has a
// table.
func (l *lowerer) route(logits string) string {
	moe, args, a := l.s.in("moe."), []string{logits}, l.routeAttrs()
	if std := moe + "gate_table.weight"; l.has(std) {
		table := l.built("w_expert_ids", []string{std}, l.tensors[layerName(std, l.at)].Shape, true, func(src []*tensor.Transform) *tensor.Transform { return src[0] })
		return l.t.op("r", "route", append(args, "%ids", table), a.flag("by_id"))
	}
	if b := l.weight("w_score_bias", moe+"gate_score.bias", l.scoreBiasCut()); b != "" {
		args = append(args, b)
	}
	return l.t.op("r", "route", args, a)
}

// scaledVector returns the cut that multiplies a vector by a constant; nil for 1.
func (l *lowerer) scaledVector(std string, by float64) *cut {
	if by == 1 {
		return nil
	}
	return &cut{rows: l.tensors[layerName(std, l.at)].Shape[0], wide: true, apply: func(r *tensor.Transform) *tensor.Transform {
		return &tensor.Transform{Op: "scale", Args: []*tensor.Transform{r}, Nums: []float64{by}}
	}}
}

// latentExperts writes the routed experts, between projections to and from a narrower
// vector if the model has them (Nemotron 3).
func (l *lowerer) latentExperts(x, r string) string {
	moe := l.s.in("moe.")
	if !l.has(moe + "latent_in.weight") {
		return l.routed(x, r)
	}
	y := l.routed(l.affine("ml", "w_latent_in", moe+"latent_in", x), r)
	return l.affine("f", "w_latent_out", moe+"latent_out", y)
}

// scoreBiasCut is expertRows for a score correction that may be stored as a row, or as
// the first of a row for each set of experts (ERNIE 4.5).
func (l *lowerer) scoreBiasCut() *cut {
	t, ok := l.tensors[layerName(l.s.in("moe.gate_score.bias"), l.at)]
	if !ok || len(t.Shape) != 2 {
		return l.expertRows()
	}
	stored := t.Shape[0] * t.Shape[1]
	all, rows := rowVector(stored), rowsCut(0, l.usedExperts())
	if stored == rows.rows {
		return all
	}
	return &cut{rows: rows.rows, vector: true, apply: func(r *tensor.Transform) *tensor.Transform { return rows.apply(all.apply(r)) }}
}

// gateTransposed reports whether a weight is the router's matrix with inputs as rows.
func (m *Model) gateTransposed(std string, shape []int) bool {
	return m.Net.MoEGateLayout == "by_shape" && strings.HasSuffix(std, ".moe.gate.weight") && shape[1] != m.Hyper.Hidden
}

// expertRows cuts the gate to the experts in use; nil if all are in use.
func (l *lowerer) expertRows() *cut {
	if n := l.usedExperts(); n < l.Net.ExpertCount {
		return rowsCut(0, n)
	}
	return nil
}

func (l *lowerer) routeAttrs() attrs {
	n := l.Net
	a := attrs{}.int("top_k", n.MoETopK).word("score", n.MoEScore)
	if n.MoENormTopKProb && n.MoENormPower == 1 && n.MoEScore != "softmax_topk" && n.MoEScore != "sparsemixer" {
		a = a.flag("norm")
	}
	if n.MoEScore == "sparsemixer" {
		a = a.num("jitter", n.MoEJitter)
	}
	if n.MoEScale != 1 {
		a = a.num("scale", n.MoEScale)
	}
	if n.MoEGroups > 1 {
		a = a.int("groups", n.MoEGroups).int("top_groups", n.MoETopGroups).word("group_score", n.MoEGroupScore)
	}
	return a
}

// routed writes the experts op. Its weights are stored as one tensor per expert,
// or as tensors of all experts.
func (l *lowerer) routed(x, r string) string {
	part := l.expertWeight
	if l.has(l.s.in("moe.experts.w2.weight")) {
		part = l.stackedWeight
	}
	args := []string{x, r, part("w_gate_exps", "w1", ".weight")}
	biases := []string{part("w_gate_exps_bias", "w1", ".bias")}
	up := part("w_up_exps", "w3", ".weight")
	if up != "" {
		args = append(args, up)
		biases = append(biases, part("w_up_exps_bias", "w3", ".bias"))
	}
	args = append(args, part("w_down_exps", "w2", ".weight"))
	biases = append(biases, part("w_down_exps_bias", "w2", ".bias"))
	a := l.expertAttrs(up != "")
	if biases[0] != "" {
		args, a = append(args, biases...), a.flag("biased")
	}
	for _, w := range args {
		if w == "" {
			l.fail("the experts of layer %d have different tensors or biases; want the same for gate, up and down", l.at)
		}
	}
	if l.Net.MoEScaledInput {
		a = a.flag("scale_input")
	}
	return l.t.op("f", "experts", args, a)
}

func (l *lowerer) expertAttrs(gated bool) attrs {
	n := l.Net
	a := attrs{}
	if n.MoEActivation == "swiglu_oai" {
		a = a.word("act", n.MoEActivation).num("limit", n.MoELimit)
		if n.MoEAlpha != 1.702 { // the op's default
			a = a.num("alpha", n.MoEAlpha)
		}
	} else {
		act := activations[strings.TrimPrefix(n.ActivationFunction, "glu_")]
		if d := ops.Experts.Attr("act"); !slices.Contains(d.Words, act) {
			l.fail("network_structure.activation_function: %s is not available in experts; known: %s", n.ActivationFunction, strings.Join(d.Words, ", "))
		}
		if a = a.word("act", act); n.GLULimit > 0 {
			a = a.num("limit", n.GLULimit)
		}
	}
	if gated {
		a = a.flag("gated")
	}
	return a
}

// expertWeight declares a weight that is stored as one tensor per expert.
func (l *lowerer) expertWeight(name, part, kind string) string {
	std := l.s.in("moe.expert.{j}." + part + kind)
	at := func(j int) string { return strings.Replace(layerName(std, l.at), "{j}", fmt.Sprint(j), 1) }
	first, ok := l.tensors[at(0)]
	if !ok {
		return ""
	}
	e := l.elementOf(name, strings.Replace(std, "{j}", "0", 1))
	e.std, e.experts, e.transform = std, l.usedExperts(), tensor.Source(first.Pattern)
	for j := range e.experts {
		t, ok := l.tensors[at(j)]
		switch {
		case !ok:
			l.fail("tensor %s: missing for expert %d of layer %d", std, j, l.at)
		case t.Pattern != first.Pattern:
			l.fail("tensors %q and %q map to %s, but one pattern must match all experts", first.File, t.File, std)
		case !slices.Equal(t.Shape, first.Shape):
			l.fail("tensor %q: shape %v, want %v, that of %q", t.File, t.Shape, first.Shape, first.File)
		}
		e.wide, e.block = e.wide || t.DType != e.typ, e.block || t.DType.IsBlock()
	}
	return l.declare(e)
}

// sharedExpert writes the FFN that every token passes. With a gate it is a
// mixture of one expert with the gate's sigmoid as its weight (Qwen2-MoE).
func (l *lowerer) sharedExpert(x string) string {
	se := l.s.in("moe.shared_expert.")
	if l.has(se + "gate.weight") {
		logit := l.linear("sl", "w_shared_router", se+"gate", x, l.asRow(se+"gate.weight"))
		args := []string{x, l.t.op("sr", "route", []string{logit}, attrs{}.int("top_k", 1).word("score", "sigmoid"))}
		for _, w := range []struct{ name, std string }{{"w_shared_gate", "w1"}, {"w_shared_up", "w3"}, {"w_shared_down", "w2"}} {
			if ref := l.onlyExpert(w.name, se+w.std+".weight"); ref != "" {
				args = append(args, ref)
			}
		}
		return l.t.op("s", "experts", args, l.expertAttrs(len(args) == 5))
	}
	if packed := se + "w1n3"; l.has(packed + ".weight") {
		f := l.tensors[layerName(packed+".weight", l.at)].Shape[0] / 2
		gate := l.linear("sg", "w_shared_gate", packed, x, rowsCut(0, f))
		up := l.linear("su", "w_shared_up", packed, x, rowsCut(f, 2*f))
		return l.linear("s", "w_shared_down", se+"w2", l.gated(gate, up), nil)
	}
	gate, c := l.affine("sg", "w_shared_gate", se+"w1", x), l.Net.GLULimit
	if c > 0 {
		gate = l.t.op("sg", "clamp", []string{gate}, attrs{}.num("lo", math.Inf(-1)).num("hi", c))
	}
	h := l.activation(gate)
	if l.has(se + "w3.weight") {
		up := l.affine("su", "w_shared_up", se+"w3", x)
		if c > 0 {
			up = l.t.op("su", "clamp", []string{up}, attrs{}.num("lo", -c).num("hi", c))
		}
		h = l.t.op("sh", "mul", []string{h, up}, nil)
	}
	return l.affine("s", "w_shared_down", se+"w2", h)
}

// asRow returns the cut that reshapes a vector to a matrix of one row; nil for a matrix.
func (l *lowerer) asRow(std string) *cut {
	t := l.tensors[layerName(std, l.at)]
	if len(t.Shape) != 1 {
		return nil
	}
	return &cut{rows: 1, shape: []int{1, t.Shape[0]}, apply: func(r *tensor.Transform) *tensor.Transform { return apply("reshape", r, 1, t.Shape[0]) }}
}

// onlyExpert declares a weight over the layers and one expert.
func (l *lowerer) onlyExpert(name, std string) string {
	if !l.has(std) {
		return ""
	}
	e := l.elementOf(name, std)
	e.experts, e.transform = 1, tensor.Source(l.tensors[layerName(std, l.at)].Pattern)
	return l.declare(e)
}

// stackedWeight declares a weight from a tensor of all experts. Its shape is
// [E, rows, columns], or the experts' rows are concatenated. The matrices may be
// transposed, and gate and up may be stored in one.
func (l *lowerer) stackedWeight(name, part, kind string) string {
	std, both := l.s.in("moe.experts."+part+kind), false
	if !l.has(std) && part != "w2" {
		std, both = l.s.in("moe.experts.w1n3"+kind), true
	}
	if !l.has(std) {
		return ""
	}
	w := l.elementOf(name, std)
	w.experts = l.usedExperts()
	t := l.tensors[layerName(std, l.at)]
	e, size := l.Net.ExpertCount, 1
	if n := e + l.Net.MoEZeroExperts; len(t.Shape) == 3 && t.Shape[0] == n {
		e = n // the last ones are not read
	}
	for _, n := range t.Shape {
		size *= n
	}
	r := &tensor.Transform{Op: "part_rows", Args: []*tensor.Transform{tensor.Source(t.Pattern)}, Nums: []float64{float64(e)}}
	shape := append([]int(nil), t.Shape...)
	if shape[0]%e != 0 || kind == ".weight" && len(shape) < 2 || len(shape) > 3 {
		l.fail("tensor %q: shape %v, want the matrices of %d experts", t.File, t.Shape, e)
		return "@" + name
	}
	switch {
	case shape[0] != e || len(shape) == 1:
		shape[0] /= e
	default:
		shape = shape[1:]
		r = &tensor.Transform{Op: "reshape", Args: []*tensor.Transform{r}, Nums: numbers(shape)}
	}
	if kind == ".weight" && l.transposed(part, shape) {
		r = &tensor.Transform{Op: "transpose", Args: []*tensor.Transform{r}}
		shape = []int{shape[1], shape[0]}
	}
	if both {
		r, shape = l.halfOfGateUp(part, r, shape)
	}
	w.shape, w.transform = shape, r
	return l.declare(w)
}

// otherSet reports whether a tensor belongs to an expert of a set that no token of a text
// is routed to.
func (m *Model) otherSet(r nameRule, expert int) bool {
	return m.Net.MoESets > 1 && expert >= m.Net.ExpertCount && strings.Contains(r.standard.String(), ".moe.expert.{j}.")
}

// transposed reports whether a tensor of all experts stores its matrices, of this shape,
// with inputs as rows.
func (l *lowerer) transposed(part string, shape []int) bool {
	down, hidden := part == "w2", l.Hyper.Hidden
	switch l.Net.MoELayout {
	case "in_out":
		return true
	case "down_in_out":
		return down
	case "by_shape":
		return down && shape[0] != hidden || !down && shape[1] != hidden
	}
	return false
}

// halfOfGateUp selects gate (w1) or up (w3) from a tensor that stores both.
func (l *lowerer) halfOfGateUp(part string, r *tensor.Transform, shape []int) (*tensor.Transform, []int) {
	f, at := shape[0]/2, 0
	if part == "w3" {
		at = 1
	}
	c := rowsCut(at*f, (at+1)*f)
	if l.Net.MoEGateUp == "interleaved" {
		c = groupCut(f, 2, at, at+1)
	}
	return c.apply(r), append([]int{f}, shape[1:]...)
}

func numbers(v []int) []float64 {
	out := make([]float64, len(v))
	for i, n := range v {
		out[i] = float64(n)
	}
	return out
}
