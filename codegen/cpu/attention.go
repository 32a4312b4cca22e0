package cpu

import (
	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// attention emits attention over the paged KV cache.
func (e *emitter) attention(r *layout.Region, a *layout.Attention) error {
	k, err := e.only("attention", a.State.Elem)
	if err != nil {
		return err
	}
	f, err := e.names.Attention(e.w, r, a)
	if err != nil {
		return err
	}
	sym := e.use(k, a.State.Elem, "void %s(const ifl_attention *a);")
	w := e.w
	w.P("const ifl_attention a = {")
	w.P(".step = %s, .pool = c->pool, .tid = tid, .threads = c->threads,", f.Step)
	w.P(".q = %s, .ldq = %d, .out = %s, .ldo = %d,", e.names.Rows(a.Q), a.Q.Pitch, e.names.Rows(a.Out), a.Out.Pitch)
	size := func(n ctext.StateSize) string { return e.names.Size(a.State, n) }
	w.P(".state = %s, .page_bytes = %s,", f.State, size(ctext.PageBytes))
	w.P(".heads = %d, .kv_heads = %s, .dim = %s, .vdim = %s,", a.Heads, size(ctext.KVHeads), size(ctext.KeyDim), size(ctext.ValueDim))
	w.P(".scale = %s, .causal = %d,", f.Scale, ctext.Bit(a.Causal))
	if a.Softcap != 0 {
		w.P(".softcap = %s,", ctext.Float(a.Softcap))
	}
	if f.Window != "0" {
		w.P(".window = %s,", f.Window)
	}
	if f.Alibi != "NULL" {
		w.P(".alibi = %s,", f.Alibi)
	}
	if f.Sinks != "NULL" {
		w.P(".sinks = %s,", f.Sinks)
	}
	e.selection(a, f)
	if a.Relative != nil {
		w.P(".rel = %s, .ldrel = %d, .rel_bucket = %s, .rel_max = %d,", f.Relative, f.RelativePitch, f.Buckets, a.Relative.Max)
	}
	w.P(".scratch = c->attention, .scratch_bytes = c->attention_bytes,")
	w.P(".calib = %s,", e.scores(r))
	w.P("};")
	w.P("%s(&a);", sym)
	if a.Selected == nil && a.Every <= 1 && !a.Cross {
		e.out.Manifest.Regions[r.Number].Attention = &manifest.Attention{
			State: a.State.Name, MACs: a.Heads * (a.State.Dim + a.State.VDim), Windows: a.Windows, Causal: a.Causal}
	}
	e.header("ifl_attn.h")
	n := e.need.attention
	if n == nil {
		n = &attentionNeeds{1, 1, 1}
		e.need.attention = n
	}
	n.heads, n.dim, n.vdim = max(n.heads, a.Heads), max(n.dim, a.State.Dim), max(n.vdim, a.State.VDim)
	return nil
}

// selection emits what limits the rows that a token sees, and relative positions.
func (e *emitter) selection(a *layout.Attention, f ctext.AttentionFields) {
	w := e.w
	if a.Selected != nil {
		w.P(".selected = %s, .lds = %d, .top = %d,", e.names.Rows(*a.Selected), a.Selected.Pitch, a.Selected.Cols)
	}
	if a.Global > 0 {
		w.P(".global = %d,", a.Global)
	}
	if a.RelKeys != nil {
		w.P(".rel_keys = %s, .ldkeys = %d,", f.RelKeys, f.KeysPitch)
	}
	if a.RelQueries != nil {
		w.P(".rel_queries = %s, .ldqueries = %d,", f.RelQueries, f.QueriesPitch)
	}
	if a.Every > 1 || a.LSE {
		w.P(".every = %d, .lse = %d,", a.Every, ctext.Bit(a.LSE))
	}
}
