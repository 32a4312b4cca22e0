package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// attentionRegion emits attention over the paged state.
func (g *cudaGen) attentionRegion(s *cudaSchedule, op *ir.Op) error {
	st := g.states[op.Args[1].Value]
	if len(g.cat.For("attention", st.elem)) == 0 {
		return fmt.Errorf("%s: the cuda target has no attention over a state of type %s", pos(op), st.elem)
	}
	heads, kvHeads := op.Int("heads"), op.Int("kv_heads")
	body, _, err := g.written(2, func() error { return g.attentionBody(s, op, st) })
	if err != nil {
		return err
	}
	u := g.unit("attention")
	role := op.Results[0].Role()
	doc := fmt.Sprintf("attention: %d heads on %d of width %d, %s state", heads, kvHeads, st.dim, st.elem)
	holes := map[string]any{
		"Doc": doc, "Count": rowCount(role), "Body": body, "Type": st.elem, "Heads": heads, "KVHeads": kvHeads, "Dim": st.dim, "VDim": st.vdim}
	if tiles := g.tilesFor(st); tiles != nil && role == "tokens" {
		err = g.tiledAttention(s, u, tiles, holes)
	} else {
		err = g.floatAttention(s, u, role, holes)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", pos(op), err)
	}
	return g.end(u, doc+".")
}

// floatAttention emits the kernel that computes in floats: a block a token.
func (g *cudaGen) floatAttention(s *cudaSchedule, u *cudaUnit, role string, holes map[string]any) error {
	u.headers = append(u.headers, "ifl_attention.cuh")
	heads, kvHeads, dim, vdim := holes["Heads"].(int), holes["KVHeads"].(int), holes["Dim"].(int), holes["VDim"].(int)
	group := heads / kvHeads
	shared := 4 * (group*dim + group*64 + group*vdim + 3*group + 4)
	k, err := g.kernel(u, "attention", u.name, 128, shared, holes)
	if err != nil {
		return err
	}
	blocks := blocksPer(role, 1)
	s.launch(k, blocksOf(kvHeads), blocks, splitsOf(kvHeads, blocks))
	g.attends(manifest.CUDAAttention{Counters: heads, Blocks: kvHeads, Floats: group * (2 + vdim)})
	return nil
}

// attends notes what an attention's scratch takes.
func (g *cudaGen) attends(size manifest.CUDAAttention) {
	if !slices.Contains(g.model.Plan.Attention, size) {
		g.model.Plan.Attention = append(g.model.Plan.Attention, size)
	}
}

// splitsOf is into how many parts the context is cut where there are so many
// blocks for each part.
func splitsOf(n int, blocks manifest.CUDADim) manifest.CUDADim {
	blocks.N, blocks.Splits = n, true
	return blocks
}

// attentionBody declares a, what the attention's functions take.
func (g *cudaGen) attentionBody(s *cudaSchedule, op *ir.Op, st *state) error {
	w, r := g.w, g.rows(s, op.Results[0].Role())
	addr, err := g.stateAt(op.Args[1], s.layer)
	if err != nil {
		return err
	}
	sinks := "NULL"
	if op.Bool("sinks") {
		if sinks, err = r.vector(op.Args[len(op.Args)-1]); err != nil {
			return err
		}
	}
	f, err := g.attentionFields(r, op, st)
	if err != nil {
		return err
	}
	rel := "NULL, 0, NULL, 0"
	if f.rel != "" {
		rel = fmt.Sprintf("%s, %d, buckets, %d", f.rel, f.ldrel, f.limit)
	}
	q, out := op.Args[0].Value, op.Results[0]
	w.p("const ifl_attention a = {")
	w.p("%s, %s, %d, %s, %d,", f.step, g.slotPtr(q), round16(q.Type.Cols()), g.slotPtr(out), round16(out.Type.Cols()))
	w.p("%s, %d, %s, %s, %s, %d,", addr, st.page, f.scale, cFloat(op.Float("softcap")), f.window, bit(op.Bool("causal")))
	w.p("%s, %s, %s, c->attention,", f.alibi, sinks, rel)
	w.p("};")
	return nil
}

// moves emits the kernels that copy a state row, one a state.
func (g *cudaGen) moves() error {
	if len(g.mod.States) == 0 {
		return nil
	}
	u, s := g.unit("move"), &cudaSchedule{}
	for _, v := range g.mod.States {
		st := g.states[v]
		if !g.cat.Kernel("move").Takes(st.elem) {
			return fmt.Errorf("state %s: the cuda target keeps no state of type %s", v.Name, st.elem)
		}
		count := 1
		if len(v.Count) == 1 {
			count = v.Count[0].Len()
		}
		k, err := g.kernel(u, "move", u.name+"_"+cName(v.Name), 128, 0, map[string]any{
			"Doc": "state " + v.Name, "At": st.at, "Page": st.page, "Type": st.elem, "KVHeads": st.kvHeads, "Dim": st.dim, "VDim": st.vdim})
		if err != nil {
			return err
		}
		s.launch(k, blocksOf(count))
	}
	g.model.Plan.Moves = s.launches
	return g.end(u, "copies state rows.")
}

// A cudaExpert is one matrix of a mixture in the template's holes.
type cudaExpert struct{ W, Stride, Bias string }

// expertsRegion emits a mixture of experts: see ifl_experts.cuh.
func (g *cudaGen) expertsRegion(s *cudaSchedule, op *ir.Op) error {
	x := op.Args[0].Value
	in := actOf(x.Type.Elem, outliers(x))
	if x.Type.Elem.IsActivation() {
		x = x.Op.Args[0].Value
	}
	route, out, sh := op.Args[1].Value, op.Results[0], ops.ExpertsShapeOf(op)
	if sh.Experts > 1024 {
		return fmt.Errorf("%s: %d experts; the cuda target routes to at most 1024", pos(op), sh.Experts)
	}
	u := g.unit("experts")
	u.headers = append(u.headers, "ifl_experts.cuh")
	hidden := actOf(tensor.F32, 0)
	if op.Has("act_type") {
		hidden = actOf(op.DType("act_type"), 0)
	}
	topK, role, d := routed(route, sh.Experts), x.Role(), x.Type.Cols()
	limit := "c->max_tokens"
	if role == "wanted" {
		limit = "c->max_wanted"
	}
	holes := map[string]any{
		"Experts": sh.Experts, "Max": limit, "TopK": topK, "D": d, "F": sh.Hidden, "NT": 4, "Count": rowCount(role),
		"Route": g.slotPtr(route), "LdRoute": round16(route.Type.Cols()), "X": g.slotPtr(x), "LdX": round16(d),
		"Out": g.slotPtr(out), "LdOut": round16(out.Type.Cols()), "Value": strings.ToUpper(op.Word("act")),
		"Limit": cFloat(op.Float("limit")), "Alpha": cFloat(op.Float("alpha")), "Doc": fmt.Sprintf("experts: %d of width %d, %d a row", sh.Experts, sh.Hidden, topK),
	}
	for _, m := range []struct {
		name    string
		w, bias int
	}{{"Gate", sh.Gate, sh.BiasGate}, {"Up", sh.Up, sh.BiasUp}, {"Down", sh.Down, sh.BiasDn}} {
		e, dt, err := g.expert(s, u, op, m.w, m.bias)
		if err != nil {
			return err
		}
		holes[m.name] = e
		holes[m.name+"Panel"] = map[string]string{"Gate": in.panel(dt, "NT"), "Up": in.panel(dt, "NT"), "Down": hidden.panel(dt, "1")}[m.name]
	}
	holes["In"], holes["Hidden"] = in.name, hidden.name
	g.model.Plan.Experts = append(g.model.Plan.Experts, manifest.CUDAExperts{Experts: sh.Experts, TopK: topK, In: in.bytes(d), Hidden: hidden.bytes(sh.Hidden)})
	if _, err := g.kernel(u, "experts", u.name, 256, 0, holes); err != nil {
		return err
	}
	g.model.Plan.Kernels = g.model.Plan.Kernels[:len(g.model.Plan.Kernels)-1] // the template has four
	u.proms = map[string]map[string]int{u.name + "_hidden": u.proms[u.name]}
	name := func(part string) int { return g.entry(u, u.name+"_"+part, 256, 0) }
	s.launch(name("list"), blocksOf(1))
	s.launch(name("pack"), blocksPer(role, 1))
	s.launch(name("hidden"), blocksOf((sh.Hidden+63)/64), blocksOf(sh.Experts))
	s.launch(name("sum"), blocksOf((d+63)/64), blocksPer(role, 1))
	return g.end(u, holes["Doc"].(string)+".")
}

// expert gives one matrix of a mixture; at 0 there is none.
func (g *cudaGen) expert(s *cudaSchedule, u *cudaUnit, op *ir.Op, at, bias int) (cudaExpert, tensor.DType, error) {
	e := cudaExpert{Bias: "NULL"}
	if at == 0 {
		return e, 0, nil
	}
	p := g.weights[op.Args[at].Value]
	u.needs(p.dtype)
	var err error
	if e.W, err = g.weightAt(op.Args[at], s.layer); err != nil {
		return e, 0, err
	}
	e.Stride = fmt.Sprint(p.size())
	if bias > 0 {
		b := g.weights[op.Args[bias].Value]
		addr, err := g.weightAt(op.Args[bias], s.layer)
		if err != nil {
			return e, 0, err
		}
		e.Bias = fmt.Sprintf("reinterpret_cast<const float *>(%s + e * INT64_C(%d)) + n0", addr, b.size())
	}
	return e, p.dtype, nil
}
