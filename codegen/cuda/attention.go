package cuda

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// attention emits attention over the paged KV cache.
func (e *emitter) attention(s *schedule, r *layout.Region, a *layout.Attention) error {
	if len(e.cat.For("attention", a.State.Elem)) == 0 {
		return fmt.Errorf("region %s: the cuda target does not support a KV cache of type %s", r.Name, a.State.Elem)
	}
	u := e.unit(r.Function())
	body, err := written(1, func(w *ctext.Writer) error { return u.attentionBody(w, r, a) })
	if err != nil {
		return err
	}
	holes := map[string]any{
		"Doc": r.Doc, "Count": rowCount(r.Role), "Body": body, "Type": a.State.Elem,
		"Heads": a.Heads, "KVHeads": a.KVHeads, "Dim": a.State.Dim, "VDim": a.State.VDim}
	special := a.RelKeys != nil || a.RelQueries != nil || a.Global > 0
	if tiles := e.tilesFor(a.State); tiles != nil && r.Role == "tokens" && !special {
		err = u.tiledAttention(s, a, tiles, holes)
	} else {
		err = u.floatAttention(s, r.Role, a, holes)
	}
	if err != nil {
		return err
	}
	return u.end(r.Doc)
}

// floatAttention emits the f32 kernel: one thread block per token and KV head, or
// several if the KV head's query heads exceed shared memory.
func (u *unit) floatAttention(s *schedule, role string, a *layout.Attention, holes map[string]any) error {
	u.include("ifl_attention.cuh")
	dim, vdim, all := a.State.Dim, a.State.VDim, a.Heads/a.KVHeads
	group, shared := 0, 0
	for parts := 1; parts <= all; parts++ {
		if all%parts == 0 {
			group = all / parts
			if shared = 4 * (group*(dim+64+vdim+3) + 4); shared <= maxShared {
				break
			}
		}
	}
	holes["Group"] = group
	k, err := u.kernel("attention", u.name, 128, shared, holes)
	if err != nil {
		return err
	}
	blocks := blocksPer(role, 1)
	s.launch(k, blocksOf(a.Heads/group), blocks, splitsOf(a.Heads/group, blocks))
	u.e.attends(manifest.CUDAAttention{Counters: a.Heads, Blocks: a.Heads / group, Floats: group * (2 + vdim)})
	return nil
}

// attends records the scratch memory of an attention.
func (e *emitter) attends(size manifest.CUDAAttention) {
	if !slices.Contains(e.out.Plan.Attention, size) {
		e.out.Plan.Attention = append(e.out.Plan.Attention, size)
	}
}

// splitsOf returns the number of splits of the context, given the number of thread
// blocks per split.
func splitsOf(n int, blocks manifest.CUDADim) manifest.CUDADim {
	blocks.N, blocks.Splits = n, true
	return blocks
}

// attentionBody declares a, the argument of the attention's functions.
func (u *unit) attentionBody(w *ctext.Writer, r *layout.Region, a *layout.Attention) error {
	f, err := u.names.Attention(w, r, a)
	if err != nil {
		return err
	}
	rel := fmt.Sprintf("NULL, 0, NULL, 0, NULL, 0, NULL, 0, %d", a.Global)
	if a.Relative != nil {
		rel = fmt.Sprintf("%s, %d, %s, %d, %s, %d, %s, %d, %d", f.Relative, f.RelativePitch, f.RelKeys, f.KeysPitch, f.RelQueries, f.QueriesPitch, f.Buckets, a.Relative.Max, a.Global)
	}
	selected := "NULL, 0, 0"
	if a.Selected != nil {
		selected = fmt.Sprintf("%s, %d, %d", u.names.Rows(*a.Selected), a.Selected.Pitch, a.Selected.Cols)
	}
	w.P("const ifl_attention a = {")
	w.P("%s, %s, %d, %s, %d,", f.Step, u.names.Rows(a.Q), a.Q.Pitch, u.names.Rows(a.Out), a.Out.Pitch)
	w.P("%s, %d, %s, %s, %s, %d,", f.State, a.State.Each, f.Scale, ctext.Float(a.Softcap), f.Window, ctext.Bit(a.Causal))
	w.P("%s, %s, %s, %s, %d, %d, c->attention,", f.Alibi, f.Sinks, rel, selected, a.Every, ctext.Bit(a.LSE))
	w.P("};")
	return nil
}

// moves emits the kernels that copy a KV cache row, one kernel per state.
func (e *emitter) moves() error {
	if len(e.layout.States) == 0 {
		return nil
	}
	u, s := e.unit("move"), &schedule{}
	for _, st := range e.layout.States {
		if !e.cat.Kernel("move").Takes(st.Elem) {
			return fmt.Errorf("state %s: the cuda target does not support a KV cache of type %s", st.Name, st.Elem)
		}
		k, err := u.kernel("move", u.name+"_"+layout.CName(st.Name), 128, 0, map[string]any{
			"Doc": "state " + st.Name, "At": st.At, "Page": st.Each, "Type": st.Elem, "KVHeads": st.KVHeads, "Dim": st.Dim, "VDim": st.VDim})
		if err != nil {
			return err
		}
		s.launch(k, blocksOf(st.Count))
	}
	e.out.Plan.Moves = s.launches
	return u.end("copies KV cache rows")
}
