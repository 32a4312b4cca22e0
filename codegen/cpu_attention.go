package codegen

import (
	"fmt"
	"math"
	"strconv"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// attentionRegion emits attention over the paged state.
func (g *cpuGen) attentionRegion(s *schedule, op *ir.Op) error {
	st := g.states[op.Args[1].Value]
	k, err := g.only("attention", st.elem)
	if err != nil {
		return fmt.Errorf("%s: %w", pos(op), err)
	}
	sym := g.use(k, st.elem, "extern void %s(const ifl_attention *a);")
	q, out := op.Args[0].Value, op.Results[0]
	addr, err := g.stateAt(op.Args[1], s.layer)
	if err != nil {
		return err
	}
	r := g.wholeRows(s, out.Role())
	sinks := "NULL"
	if op.Bool("sinks") {
		if sinks, err = r.vector(op.Args[len(op.Args)-1]); err != nil {
			return err
		}
	}
	g.begin(s, "attention", fmt.Sprintf("attention: %d heads on %d of width %d, %s state.", op.Int("heads"), op.Int("kv_heads"), st.dim, st.elem))
	w := g.w
	f, err := g.attentionFields(r, op, st)
	if err != nil {
		return err
	}
	w.p("const ifl_attention a = {")
	w.p(".step = %s, .team = c->team, .tid = tid, .threads = c->threads,", f.step)
	w.p(".q = %s, .ldq = %d, .out = %s, .ldo = %d,", g.slotPtr(q), round16(q.Type.Cols()), g.slotPtr(out), round16(out.Type.Cols()))
	w.p(".state = %s, .page_bytes = %d,", addr, st.page)
	w.p(".heads = %d, .kv_heads = %d, .dim = %d, .vdim = %d,", op.Int("heads"), op.Int("kv_heads"), st.dim, st.vdim)
	w.p(".scale = %s, .softcap = %s, .window = %s, .causal = %d,", f.scale, cFloat(op.Float("softcap")), f.window, bit(op.Bool("causal")))
	w.p(".alibi = %s, .sinks = %s, .scratch = c->attention, .scratch_bytes = c->attention_bytes,", f.alibi, sinks)
	if f.rel != "" {
		w.p(".rel = %s, .ldrel = %d, .rel_bucket = buckets, .rel_max = %d,", f.rel, f.ldrel, f.limit)
	}
	w.p(".seen = %s,", g.scores(s))
	w.p("};")
	w.p("%s(&a);", sym)
	g.end(s)
	g.need.attends = true
	g.need.heads = max(g.need.heads, op.Int("heads"))
	g.need.dim, g.need.vdim = max(g.need.dim, st.dim), max(g.need.vdim, st.vdim)
	return nil
}

// scores is where calibration counts the rows of an attention by their largest
// score: for each layer by itself.
func (g *cpuGen) scores(s *schedule) string {
	at, layers := strconv.FormatInt(g.need.seen, 10), 1
	if s.repeat != nil {
		lo := s.repeat.Int("lo")
		layers = s.repeat.Int("hi") - lo
		at += fmt.Sprintf(" + (%s - %d) * IFL_SCORES", s.layer, lo)
	}
	g.out.Manifest.Scores = append(g.out.Manifest.Scores, manifest.Scores{Seen: g.need.seen, Layers: layers})
	g.need.seen += int64(layers) * manifest.ScoreBins
	return fmt.Sprintf("c->seen ? c->seen + tid * IFL_SEEN + %s : NULL", at)
}

// attentionFields are the C of what every target's attention takes.
type attentionFields struct {
	step, alibi, window, scale string
	rel                        string // table of a relative bias (T5), whose buckets are in the array of that name; "": none
	ldrel, limit               int
}

// attentionFields writes the tables that an attention op needs, and gives the
// names of what it takes.
func (g *cpuGen) attentionFields(r *rowCode, op *ir.Op, st *state) (f attentionFields, err error) {
	w := g.w
	f = attentionFields{step: "s", alibi: "NULL", window: strconv.Itoa(op.IntAt("window", 0))}
	if sl := op.Floats("alibi"); len(sl) > 0 {
		w.p("static const float slopes[] = %s;", cFloats(sl))
		f.alibi = "slopes"
	}
	if ws := op.Ints("window"); len(ws) > 1 {
		w.p("static const int32_t windows[] = %s;", cInts(ws))
		f.window = "windows[" + r.iteration() + "]"
	}
	scale := op.Float("scale")
	if !op.Has("scale") {
		scale = 1 / math.Sqrt(float64(st.dim))
	}
	f.scale = cFloat(scale)
	if n := op.Int("rel_buckets"); n > 0 { // the bucket of each distance is known now
		if f.rel, err = r.vector(op.Args[2]); err != nil {
			return f, err
		}
		f.ldrel, f.limit = round16(op.Args[2].Type.Cols()), op.Int("rel_max")
		var buckets []int
		for d := -f.limit; d <= f.limit; d++ {
			buckets = append(buckets, ops.RelBucket(d, n, f.limit, op.Bool("rel_bidirectional")))
		}
		w.p("static const int16_t buckets[] = %s;", cInts(buckets))
	}
	if op.Bool("cross") {
		w.p("const ifl_step source = ifl_source_step(c, s); /* the rows of the sequence's source, all of them */")
		f.step = "&source"
		g.need.cross = true
	}
	return f, nil
}
