package ctext

import (
	"fmt"
	"math"
	"strconv"

	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
)

// rowCalls maps the row ops that are function calls, not expressions, to their
// emitters.
var rowCalls = map[string]func(r *Rows, ops []*ir.Op, at int) error{
	"rmsnorm":     (*Rows).norm,
	"layernorm":   (*Rows).norm,
	"l2norm":      (*Rows).norm,
	"softmax":     (*Rows).softmax,
	"rope":        (*Rows).rope,
	"rope_table":  (*Rows).ropeTable,
	"split":       (*Rows).split,
	"concat":      (*Rows).concat,
	"kv_append":   (*Rows).kvAppend,
	"embed":       (*Rows).embed,
	"rows":        (*Rows).rows,
	"route":       (*Rows).route,
	"join_heads":  (*Rows).joinHeads,
	"head_cols":   (*Rows).headCols,
	"sinusoid":    (*Rows).sinusoid,
	"fill":        (*Rows).fill,
	"reduce":      (*Rows).reduce,
	"select_rows": (*Rows).selectRows,
	"unfold":      (*Rows).unfold,
	"all_gather":  (*Rows).gather,

	"position_scale":  (*Rows).positionScale,
	"stream_weights":  (*Rows).streamWeights,
	"mix_streams":     (*Rows).mixStreams,
	"merge_attention": (*Rows).mergeAttention,
}

func (r *Rows) call(ops []*ir.Op, at int) error {
	f := rowCalls[ops[at].Def.Name]
	if f == nil {
		return fmt.Errorf("%s: no target can compute this op here", layout.Position(ops[at]))
	}
	return f(r, ops, at)
}

// norm emits rmsnorm, layernorm and l2norm, of the whole row or of each head.
func (r *Rows) norm(ops []*ir.Op, at int) error {
	op := ops[at]
	x, out := op.Args[0].Value, op.Results[0]
	src, err := r.contiguous(x)
	if err != nil {
		return err
	}
	dst, err := r.place(out, at)
	if err != nil {
		return err
	}
	var params []string
	for _, a := range op.Args[1:] {
		p, err := r.Weight(a, r.loop)
		if err != nil {
			return err
		}
		params = append(params, p)
	}
	want := map[string]int{"rmsnorm": 1, "layernorm": 2, "l2norm": 0}[op.Def.Name]
	for len(params) < want {
		params = append(params, "NULL")
	}
	base := ""
	if op.Def.Attr("base") != nil {
		base = ", " + Float(op.Float("base"))
	}
	heads := op.Int("heads")
	width := x.Type.Cols() / heads
	emit := func(off string) {
		args := Plus(dst.ptr, off) + ", " + Plus(src.ptr, off)
		for _, p := range params {
			args += ", " + p
		}
		r.w.P("ifl_row_%s(%s, %s, %s%s);", op.Def.Name, args, r.Width(width), Float(op.Float("eps")), base)
	}
	if heads == 1 {
		emit("0")
	} else {
		_, count := r.heads(x, width)
		r.eachHead(count, func(h string) { emit(headAt(h, width)) })
	}
	r.where[out] = dst
	return nil
}

// rope rotates in place if the slice belongs to the region and is not used later.
func (r *Rows) rope(ops []*ir.Op, at int) error {
	op := ops[at]
	x, cs, out := op.Args[0].Value, op.Args[1].Value, op.Results[0]
	l, err := r.contiguous(x)
	if err != nil {
		return err
	}
	if r.keep[out] {
		dst, err := r.place(out, at)
		if err != nil {
			return err
		}
		l = r.copyTo(x, l, dst)
	} else if !l.own || r.last[x] > at {
		l = r.copyTo(x, l, r.scratch(out))
	}
	table, err := r.find(cs, "0")
	if err != nil {
		return err
	}
	width := x.Type.Cols() / op.Int("heads")
	_, count := r.heads(x, width)
	adjacent := 0
	if op.Word("pairs") == "adjacent" {
		adjacent = 1
	}
	r.w.P("ifl_row_rope(%s, %s, %s, %d, %d, %d, %d);", l.ptr, table.ptr, count, width, cs.Type.Cols(), op.Int("offset"), adjacent)
	r.where[out] = l
	return nil
}

// ropeTable fills a row of cosines and sines of the token's position.
func (r *Rows) ropeTable(ops []*ir.Op, at int) error {
	op := ops[at]
	dim := op.Int("dim")
	name := layout.CName(op.Results[0].Name)
	dst, err := r.place(op.Results[0], at)
	if err != nil {
		return err
	}
	pick, scale := r.w.Table("float", "freqs_"+name, Floats(ropeFreqs(op))), Float(op.Float("scale"))
	if from := op.Int("long_from"); from > 0 {
		longer := r.w.Table("float", "longer_"+name, Floats(op.Floats("long_freqs")))
		long := fmt.Sprintf("ifl_rows_of(s, s->seq[t]) > %d", from)
		pick = fmt.Sprintf("%s ? %s : %s", long, longer, pick)
		if op.Has("long_scale") {
			scale = fmt.Sprintf("%s ? %s : %s", long, Float(op.Float("long_scale")), scale)
		}
	}
	pos := Plus("s->pos[t]", strconv.Itoa(op.Int("shift")))
	call := fmt.Sprintf("ifl_rope_table(%s, %s, %d, %s, %s);", dst.ptr, pos, dim, pick, scale)
	if from := op.Int("dynamic_from"); from > 0 {
		rows, theta, factor := "ifl_rows_of(s, s->seq[t])", Float(op.Float("theta")), Float(op.Float("dynamic_factor"))
		r.w.P("if (%s > %d) ifl_rope_table_dynamic(%s, %s, %d, %s, %s, %d, %s, %s); else", rows, from, dst.ptr, pos, dim, theta, factor, from, rows, scale)
	}
	r.w.P("%s", call)
	r.where[op.Results[0]] = dst
	return nil
}

// ropeFreqs returns the rotation frequencies θ^(−2i/dim), rounded to float32 as in
// published implementations.
func ropeFreqs(op *ir.Op) []float64 {
	if fs := op.Floats("freqs"); len(fs) > 0 {
		return fs
	}
	dim, theta := op.Int("dim"), op.Float("theta")
	var fs []float64
	for i := 0; i < dim; i += 2 {
		fs = append(fs, float64(1/float32(math.Pow(theta, float64(float32(i)/float32(dim))))))
	}
	return fs
}

// split assigns locations to the parts; it copies only a part that is interleaved again.
func (r *Rows) split(ops []*ir.Op, at int) error {
	op := ops[at]
	l, err := r.contiguous(op.Args[0].Value)
	if err != nil {
		return err
	}
	off, turn := 0, op.Int("panel")
	for i, out := range op.Results {
		part := loc{ptr: l.ptr, step: l.step, own: l.own && r.reads[op.Args[0].Value] == 1}
		switch {
		case turn == 16:
			part.ptr, part.step = Plus(l.ptr, strconv.Itoa(16*i)), 16*len(op.Results)
		case turn > 0:
			dst, err := r.place(out, at)
			if err != nil {
				return err
			}
			part = r.turns(l, dst, i, len(op.Results), turn, out.Type.Cols())
		default:
			part.ptr = Plus(l.ptr, strconv.Itoa(off))
		}
		if r.keep[out] && (turn == 0 || turn == 16) {
			dst, err := r.place(out, at)
			if err != nil {
				return err
			}
			part = r.copyTo(out, part, dst)
		}
		r.where[out] = part
		r.last[out] = max(r.last[out], at)
		off += out.Type.Cols()
	}
	return nil
}

// turns copies the columns of one of several interleaved parts.
func (r *Rows) turns(from, to loc, part, parts, turn, cols int) loc {
	copied := func(n int, k string) {
		r.w.P("%s", r.Backend.Copy(Plus(to.ptr, k+" * "+strconv.Itoa(turn)), Plus(from.ptr, fmt.Sprintf("(%s * %d + %d) * %d", k, parts, part, turn)), n))
	}
	if whole := cols / turn; whole > 0 {
		r.w.P("for (int k = 0; k < %d; k++) {", whole)
		copied(turn, "k")
		r.w.P("}")
	}
	if cols%turn > 0 {
		copied(cols%turn, strconv.Itoa(cols/turn))
	}
	return to
}

func (r *Rows) concat(ops []*ir.Op, at int) error {
	op := ops[at]
	dst, err := r.place(op.Results[0], at)
	if err != nil {
		return err
	}
	off := 0
	for _, a := range op.Args {
		l, err := r.contiguous(a.Value)
		if err != nil {
			return err
		}
		r.w.P("%s", r.Backend.Copy(Plus(dst.ptr, strconv.Itoa(off)), l.ptr, a.Type.Cols()))
		off += a.Type.Cols()
	}
	r.where[op.Results[0]] = dst
	return nil
}

// eachHead emits code for each of some heads; h is the head's index in C.
func (r *Rows) eachHead(count string, emit func(h string)) {
	if count == "1" {
		emit("0")
		return
	}
	r.w.P("for (int h = 0; h < %s; h++) {", count)
	emit("h")
	r.w.P("}")
}

// headAt returns the offset of a head in a row.
func headAt(h string, width int) string {
	if h == "0" {
		return h
	}
	return fmt.Sprintf("%s * %d", h, width)
}

// kvAppend writes the heads of the slice to the token's row of the KV cache. In a tile,
// it writes only the part in the tile.
func (r *Rows) kvAppend(ops []*ir.Op, at int) error {
	op := ops[at]
	st := r.Layout.State(op.Args[0].Value)
	base, err := r.State(op.Args[0], r.loop)
	if err != nil {
		return err
	}
	r.w.P("{") // a scope, because a layer may append to several states
	r.w.P("uint8_t *page = %s + ifl_kv_page(s, s->seq[t], s->slot[t]) * %s;", base, r.Size(st, PageBytes))
	for i, a := range op.Args[1:] {
		if !r.holds(a.Value) {
			continue
		}
		l, err := r.contiguous(a.Value)
		if err != nil {
			return err
		}
		isKey, width := op.Args[0].State.Fields[i].Name == "k", st.VDim
		if isKey {
			width = st.Dim
		}
		first, count := r.heads(a.Value, width)
		if isKey && r.Backend.Prefetches() {
			r.prefetchState(st, base, first, count)
		}
		r.eachHead(count, func(h string) {
			k, v := Plus(l.ptr, headAt(h, width)), "NULL"
			if !isKey {
				k, v = v, k
			}
			r.w.P("ifl_kv_put_%s(page, s->slot[t] %% IFL_PAGE_ROWS, %s, %s, %s, %s, %s, %s);", st.Elem, Plus(first, h),
				r.Size(st, KVHeads), r.Size(st, KeyDim), r.Size(st, ValueDim), k, v)
		})
	}
	r.w.P("}")
	if at+1 < len(ops) && ops[at+1].Def.Name != "kv_append" { // the next op may overwrite the rows
		r.Backend.Sync(r.w)
	}
	return nil
}

// prefetchState prefetches the cache lines that the token after the next one writes,
// if it belongs to another sequence.
func (r *Rows) prefetchState(st *layout.State, base, first, count string) {
	r.w.P("if (t + 2 < s->tokens && s->seq[t + 2] != s->seq[t]) {")
	r.w.P("const uint8_t *next = %s + ifl_kv_page(s, s->seq[t + 2], s->slot[t + 2]) * %s;", base, r.Size(st, PageBytes))
	r.eachHead(count, func(h string) {
		r.w.P("ifl_kv_expect(next, s->slot[t + 2] %% IFL_PAGE_ROWS, %s, %s, %d);", Plus(first, h), r.Size(st, KeyDim), max(st.ElementBytes(), 1))
	})
	r.w.P("}")
}

// embed dequantizes the token's row of the table.
func (r *Rows) embed(ops []*ir.Op, at int) error {
	op := ops[at]
	a := op.Args[1]
	w := r.Layout.Weights[a.Value]
	call, err := r.Backend.Embed(w.DType)
	if err != nil {
		return fmt.Errorf("%s: %w", layout.Position(op), err)
	}
	table, err := r.Weight(a, r.loop)
	if err != nil {
		return err
	}
	dst, err := r.place(op.Results[0], at)
	if err != nil {
		return err
	}
	r.w.P("%s%s, %d, %s, %s);", call, table, w.K, input(op.Args[0].Value), dst.ptr)
	r.where[op.Results[0]] = dst
	return nil
}

// input returns the C expression of this row's element of an integer input.
func input(v *ir.Value) string { return fmt.Sprintf("s->%s[t]", layout.InputFields[v.Name]) }

// rows selects a row of a value with another row count; it is copied only if it is
// kept.
func (r *Rows) rows(ops []*ir.Op, at int) error {
	op := ops[at]
	x, out := op.Args[0].Value, op.Results[0]
	from, err := r.buffer(x)
	if err != nil {
		return err
	}
	l := loc{ptr: r.Row(from, input(op.Args[1].Value)), step: 16}
	if r.keep[out] {
		dst, err := r.place(out, at)
		if err != nil {
			return err
		}
		l = r.copyTo(out, l, dst)
	}
	r.where[out] = l
	return nil
}
