package codegen

import (
	"fmt"
	"math"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// route emits the routing of a row to its experts.
func (r *rowCode) route(ops []*ir.Op, at int) error {
	op := ops[at]
	src, err := r.contiguous(op.Args[0].Value)
	if err != nil {
		return err
	}
	bias := "NULL"
	if len(op.Args) > 1 {
		if bias, err = r.vector(op.Args[1]); err != nil {
			return err
		}
	}
	out := op.Results[0]
	dst := r.place(out, ops, at)
	if op.Word("score") == "sparsemixer" {
		r.g.w.p("ifl_row_sparsemixer(%s, %s, %d, %s, %s);", dst.ptr, src.ptr, out.Type.Cols(), cFloat(op.Float("jitter")), cFloat(op.Float("scale")))
		r.where[out] = dst
		return nil
	}
	r.g.w.p("ifl_row_route(%s, %s, %s, %d, %d, IFL_ROUTE_%s, %d, %s, %d, %d, %d);", dst.ptr, src.ptr, bias, out.Type.Cols(), op.Int("top_k"),
		strings.ToUpper(op.Word("score")), bit(op.Bool("norm")), cFloat(op.Float("scale")), op.Int("groups"), op.Int("top_groups"), bit(op.Word("group_score") == "top2"))
	r.where[out] = dst
	return nil
}

func (r *rowCode) joinHeads(ops []*ir.Op, at int) error {
	op := ops[at]
	a, err := r.contiguous(op.Args[0].Value)
	if err != nil {
		return err
	}
	b, err := r.contiguous(op.Args[1].Value)
	if err != nil {
		return err
	}
	dst := r.place(op.Results[0], ops, at)
	heads, bHeads := op.Int("heads"), op.Int("b_heads")
	r.g.w.p("ifl_row_join_heads(%s, %s, %s, %d, %d, %d, %d);", dst.ptr, a.ptr, b.ptr, heads, op.Args[0].Type.Cols()/heads, op.Args[1].Type.Cols()/bHeads, bHeads)
	r.where[op.Results[0]] = dst
	return nil
}

func (r *rowCode) headCols(ops []*ir.Op, at int) error {
	op := ops[at]
	x, err := r.contiguous(op.Args[0].Value)
	if err != nil {
		return err
	}
	dst := r.place(op.Results[0], ops, at)
	r.g.w.p("ifl_row_head_cols(%s, %s, %d, %d, %d, %d);", dst.ptr, x.ptr, op.Int("heads"), op.Args[0].Type.Cols()/op.Int("heads"), op.Int("lo"), op.Int("hi"))
	r.where[op.Results[0]] = dst
	return nil
}

// sinusoid fills a row of sines and cosines of the token's position.
func (r *rowCode) sinusoid(list []*ir.Op, at int) error {
	op := list[at]
	dst := r.place(op.Results[0], list, at)
	name := cName(op.Results[0].Name)
	var fs []string
	divide := op.Word("exponent") == "dim"
	for c, f := range ops.SinusoidFreqs(op) {
		v := float64(f)
		if divide {
			v = math.Pow(10000, 2*float64(c)/float64(op.Int("dim")))
		}
		fs = append(fs, fmt.Sprintf("%.17g", v))
	}
	r.g.w.p("static const double freqs_%s[] = {%s};", name, strings.Join(fs, ", "))
	r.g.w.p("ifl_row_sinusoid(%s, %s + %d, freqs_%s, %d, %d, %d);", dst.ptr, r.input(op.Args[0].Value), op.Int("offset"), name,
		op.Int("dim")/2, bit(divide), bit(op.Word("layout") == "pairs"))
	r.where[op.Results[0]] = dst
	return nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// routed is the most experts that a row goes to, of those there are here: of
// experts that are shared out among ranks, each has its columns of the routes.
func routed(route *ir.Value, experts int) int {
	for route.Op.Def.Name == "head_cols" {
		route = route.Op.Args[0].Value
	}
	return min(route.Op.Int("top_k"), experts)
}

// expertsRegion emits a mixture of experts: see ifl_moe.h.
func (g *cpuGen) expertsRegion(s *schedule, pro []*ir.Op, op *ir.Op, epi []*ir.Op) error {
	if len(pro)+len(epi) > 0 {
		return fmt.Errorf("%s: experts stand alone on the cpu target", pos(op))
	}
	x := op.Args[0].Value
	in, _ := actKind(x.Type.Elem)
	taken := outliers(x)
	if x.Type.Elem.IsActivation() {
		x = x.Op.Args[0].Value
	}
	route := op.Args[1].Value
	sh := ops.ExpertsShapeOf(op)
	if sh.Experts > 1024 {
		return fmt.Errorf("%s: %d experts; the cpu target routes to at most 1024", pos(op), sh.Experts)
	}
	topK := routed(route, sh.Experts)
	g.begin(s, "experts", fmt.Sprintf("experts: %d of width %d, %d a row.", sh.Experts, sh.Hidden, topK))
	w := g.w
	hidden := "IFL_F32"
	if op.Has("act_type") {
		hidden, _ = actKind(op.DType("act_type"))
	}
	w.p("const ifl_experts e = {")
	w.p(".team = c->team, .tid = tid, .threads = c->threads, .rows = %s, .experts = %d, .top_k = %d,", rowCount(x.Role()), sh.Experts, topK)
	w.p(".x = %s, .ldx = %d, .route = %s, .ldr = %d,", g.slotPtr(x), round16(x.Type.Cols()), g.slotPtr(route), round16(route.Type.Cols()))
	w.p(".out = %s, .ldo = %d, .act_in = %s, .act_hidden = %s, .outliers = %d,", g.slotPtr(op.Results[0]), round16(op.Results[0].Type.Cols()), in, hidden, taken)
	for _, m := range []struct {
		field   string
		w, bias int
	}{{"gate", sh.Gate, sh.BiasGate}, {"up", sh.Up, sh.BiasUp}, {"down", sh.Down, sh.BiasDn}} {
		if m.w == 0 {
			continue
		}
		if err := g.expertMatrix(s, op, m.field, m.w, m.bias); err != nil {
			return err
		}
	}
	w.p(".act = IFL_%s, .limit = %s, .alpha = %s,", strings.ToUpper(op.Word("act")), cFloat(op.Float("limit")), cFloat(op.Float("alpha")))
	w.p(".shared = c->experts, .y = c->own[tid].y, .mm = c->own[tid].mm,")
	w.p("};")
	w.p("ifl_run_experts(&e);")
	g.end(s)
	g.need.experts = append(g.need.experts, fmt.Sprintf("ifl_experts_bytes(rows, %d, %d, %d, %d, %s, %s)", sh.Experts, topK, x.Type.Cols(), sh.Hidden, in, hidden))
	g.need.k = max(g.need.k, sh.Hidden, x.Type.Cols())
	g.need.yCols = max(g.need.yCols, 2*64)
	return nil
}

// expertMatrix emits one matrix of the experts, with its dispatch site.
func (g *cpuGen) expertMatrix(s *schedule, op *ir.Op, field string, at, bias int) error {
	arg := op.Args[at]
	p := g.weights[arg.Value]
	addr, err := g.weightAt(arg, s.layer)
	if err != nil {
		return err
	}
	site, err := g.site(op, arg.Value)
	if err != nil {
		return err
	}
	g.w.p(".%s = {", field)
	g.w.p(".w = %s, .stride = INT64_C(%d), .panel = %d, .n = %d, .k = %d,", addr, p.size(), p.panel(), p.n, p.k)
	g.w.p(".mm = (const ifl_mm[]){%s}, .tile = (const int[])%s, .choice = c->dispatch + %d * IFL_ROWS,", strings.Join(site.symbols, ", "), cInts(site.tiles), site.index)
	if bias > 0 {
		b := g.weights[op.Args[bias].Value]
		at, err := g.weightAt(op.Args[bias], s.layer)
		if err != nil {
			return err
		}
		g.w.p(".bias = (const float *)(%s), .bias_stride = %d,", at, b.size()/4)
	}
	g.w.p("},")
	return nil
}
