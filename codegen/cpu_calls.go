package codegen

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/ir"
)

// rowCalls lists the row ops that are calls rather than expressions: one row
// an op.
var rowCalls = map[string]func(r *rowCode, ops []*ir.Op, at int) error{
	"rmsnorm":    (*rowCode).norm,
	"layernorm":  (*rowCode).norm,
	"l2norm":     (*rowCode).norm,
	"rope":       (*rowCode).rope,
	"rope_table": (*rowCode).ropeTable,
	"split":      (*rowCode).split,
	"concat":     (*rowCode).concat,
	"kv_append":  (*rowCode).kvAppend,
	"embed":      (*rowCode).embed,
	"rows":       (*rowCode).rows,
	"route":      (*rowCode).route,
	"join_heads": (*rowCode).joinHeads,
	"head_cols":  (*rowCode).headCols,
	"sinusoid":   (*rowCode).sinusoid,
	"all_gather": (*rowCode).gather,
}

// isRowOp says whether an op can be emitted row by row.
func isRowOp(op *ir.Op) bool {
	return op.Def.Is(ir.Elementwise) || rowCalls[op.Def.Name] != nil && !op.Def.Is(ir.Collective)
}

func (r *rowCode) call(ops []*ir.Op, at int) error {
	f := rowCalls[ops[at].Def.Name]
	if f == nil {
		return fmt.Errorf("%s: the cpu target cannot emit this op here", pos(ops[at]))
	}
	return f(r, ops, at)
}

// norm emits rmsnorm, layernorm and l2norm, of the whole row or of each head.
func (r *rowCode) norm(ops []*ir.Op, at int) error {
	op := ops[at]
	x, out := op.Args[0].Value, op.Results[0]
	src, err := r.contiguous(x)
	if err != nil {
		return err
	}
	dst := r.place(out, ops, at)
	var params []string
	for _, a := range op.Args[1:] {
		p, err := r.vector(a)
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
		base = ", " + cFloat(op.Float("base"))
	}
	heads := op.Int("heads")
	width := x.Type.Cols() / heads
	emit := func(off string) {
		args := dst.ptr + off + ", " + src.ptr + off
		for _, p := range params {
			args += ", " + p
		}
		r.g.w.p("ifl_row_%s(%s, %d, %s%s);", op.Def.Name, args, width, cFloat(op.Float("eps")), base)
	}
	if heads == 1 {
		emit("")
	} else {
		_, count := r.head(x, width)
		r.g.w.p("for (int h = 0; h < %s; h++) {", count)
		emit(fmt.Sprintf(" + h * %d", width))
		r.g.w.p("}")
	}
	r.where[out] = dst
	return nil
}

// rope rotates in place where the slice is the region's own and dead after.
func (r *rowCode) rope(ops []*ir.Op, at int) error {
	op := ops[at]
	x, cs, out := op.Args[0].Value, op.Args[1].Value, op.Results[0]
	l, err := r.contiguous(x)
	if err != nil {
		return err
	}
	if r.keep(out) {
		l = r.copyTo(x, l, r.place(out, ops, at))
	} else if !l.own || r.last[x] > at {
		l = r.copyTo(x, l, r.scratch(out))
	}
	table, err := r.find(cs, "0")
	if err != nil {
		return err
	}
	width := x.Type.Cols() / op.Int("heads")
	_, count := r.head(x, width)
	adjacent := 0
	if op.Word("pairs") == "adjacent" {
		adjacent = 1
	}
	r.g.w.p("ifl_row_rope(%s, %s, %s, %d, %d, %d, %d);", l.ptr, table.ptr, count, width, cs.Type.Cols(), op.Int("offset"), adjacent)
	r.where[out] = l
	return nil
}

// ropeTable fills a row of cosines and sines of the token's position.
func (r *rowCode) ropeTable(ops []*ir.Op, at int) error {
	op := ops[at]
	dim := op.Int("dim")
	name := cName(op.Results[0].Name)
	r.g.w.p("static const float freqs_%s[] = %s;", name, cFloats(ropeFreqs(op, "freqs")))
	dst := r.place(op.Results[0], ops, at)
	pick, scale := "freqs_"+name, cFloat(op.Float("scale"))
	if from := op.Int("long_from"); from > 0 {
		r.g.w.p("static const float longer_%s[] = %s;", name, cFloats(op.Floats("long_freqs")))
		long := fmt.Sprintf("ifl_rows_of(s, s->seq[t]) > %d", from)
		pick = fmt.Sprintf("%s ? longer_%s : freqs_%s", long, name, name)
		if op.Has("long_scale") {
			scale = fmt.Sprintf("%s ? %s : %s", long, cFloat(op.Float("long_scale")), scale)
		}
	}
	call := fmt.Sprintf("ifl_rope_table(%s, s->pos[t], %d, %s, %s);", dst.ptr, dim, pick, scale)
	if from := op.Int("dynamic_from"); from > 0 {
		rows, theta, factor := "ifl_rows_of(s, s->seq[t])", cFloat(op.Float("theta")), cFloat(op.Float("dynamic_factor"))
		r.g.w.p("if (%s > %d) ifl_rope_table_dynamic(%s, s->pos[t], %d, %s, %s, %d, %s, %s); else", rows, from, dst.ptr, dim, theta, factor, from, rows, scale)
	}
	r.g.w.p("%s", call)
	r.where[op.Results[0]] = dst
	return nil
}

// ropeFreqs are the rotation frequencies, rounded to float32 as published
// implementations compute them: θ^(−2i/dim).
func ropeFreqs(op *ir.Op, attr string) []float64 {
	if fs := op.Floats(attr); len(fs) > 0 {
		return fs
	}
	dim, theta := op.Int("dim"), op.Float("theta")
	var fs []float64
	for i := 0; i < dim; i += 2 {
		fs = append(fs, float64(1/float32(math.Pow(theta, float64(float32(i)/float32(dim))))))
	}
	return fs
}

// split names the parts; nothing is moved.
func (r *rowCode) split(ops []*ir.Op, at int) error {
	op := ops[at]
	x := op.Args[0].Value
	l, err := r.find(x, r.base(x))
	if err != nil {
		return err
	}
	off := 0
	for i, out := range op.Results {
		part := loc{ptr: l.ptr, step: l.step, own: l.own}
		switch {
		case op.Int("panel") == 16:
			part.ptr, part.step = fmt.Sprintf("%s + %d", l.ptr, 16*i), 16*len(op.Results)
		case off > 0:
			part.ptr = fmt.Sprintf("%s + %d", l.ptr, off)
		}
		if r.keep(out) {
			part = r.copyTo(out, part, r.place(out, ops, at))
		}
		r.where[out] = part
		r.last[out] = max(r.last[out], at)
		off += out.Type.Cols()
	}
	return nil
}

func (r *rowCode) concat(ops []*ir.Op, at int) error {
	op := ops[at]
	dst := r.place(op.Results[0], ops, at)
	off := 0
	for _, a := range op.Args {
		l, err := r.contiguous(a.Value)
		if err != nil {
			return err
		}
		r.g.w.p(r.g.spell.copy, fmt.Sprintf("%s + %d", dst.ptr, off), l.ptr, a.Type.Cols())
		off += a.Type.Cols()
	}
	r.where[op.Results[0]] = dst
	return nil
}

// kvAppend writes the heads of the slice to the token's row of the state. In a
// tile only the part that the tile holds is there.
func (r *rowCode) kvAppend(ops []*ir.Op, at int) error {
	op := ops[at]
	st := r.g.states[op.Args[0].Value]
	base, err := r.g.stateAt(op.Args[0], r.layer)
	if err != nil {
		return err
	}
	r.g.w.p("uint8_t *page = %s + ifl_kv_page(s, s->seq[t], s->slot[t]) * INT64_C(%d);", base, st.page)
	dims := []int{st.dim, st.vdim}
	for i, a := range op.Args[1:] {
		if r.has != nil && !r.has(a.Value) {
			continue
		}
		l, err := r.contiguous(a.Value)
		if err != nil {
			return err
		}
		first, count := r.head(a.Value, dims[i])
		k, v := fmt.Sprintf("%s + h * %d", l.ptr, dims[i]), "NULL"
		if i == 1 {
			k, v = "NULL", k
		} else if r.g.spell.ahead {
			r.g.w.p("if (t + 2 < s->tokens && s->seq[t + 2] != s->seq[t]) {")
			r.g.w.p("const uint8_t *next = %s + ifl_kv_page(s, s->seq[t + 2], s->slot[t + 2]) * INT64_C(%d);", base, st.page)
			r.g.w.p("for (int h = 0; h < %s; h++) ifl_kv_expect(next, s->slot[t + 2] %% 64, %s + h, %d, %d);", count, first, st.dim, max(st.bytes(), 1))
			r.g.w.p("}")
		}
		r.g.w.p("for (int h = 0; h < %s; h++) ifl_kv_put_%s(page, s->slot[t] %% 64, %s + h, %d, %d, %d, %s, %s);",
			count, st.elem, first, st.kvHeads, st.dim, st.vdim, k, v)
	}
	return nil
}

// embed dequantises the token's row of the table.
func (r *rowCode) embed(ops []*ir.Op, at int) error {
	op := ops[at]
	w := op.Args[1]
	p := r.g.weights[w.Value]
	call, err := r.g.spell.embed(r.g, p.dtype)
	if err != nil {
		return fmt.Errorf("%s: %w", pos(op), err)
	}
	addr, err := r.g.weightAt(w, r.layer)
	if err != nil {
		return err
	}
	dst := r.place(op.Results[0], ops, at)
	r.g.w.p(call, addr, p.k, r.input(op.Args[0].Value), dst.ptr)
	r.where[op.Results[0]] = dst
	return nil
}

// input is this row's element of an integer input.
func (r *rowCode) input(v *ir.Value) string {
	return fmt.Sprintf("s->%s[%s]", inputFields[v.Name], r.row[v.Role()])
}

// inputFields are the arrays of the step behind a graph's inputs.
var inputFields = map[string]string{"ids": "id", "pos": "pos", "wanted": "want", "types": "types"}

// rows picks a row of another row count; nothing is moved unless it is kept.
func (r *rowCode) rows(ops []*ir.Op, at int) error {
	op := ops[at]
	x, out := op.Args[0].Value, op.Results[0]
	from, err := r.g.rowsOf(x)
	if err != nil {
		return fmt.Errorf("%s: %w", pos(op), err)
	}
	l := loc{ptr: fmt.Sprintf("%s + (int64_t)%s * %d", from, r.input(op.Args[1].Value), round16(x.Type.Cols())), step: 16}
	if r.keep(out) {
		l = r.copyTo(out, l, r.place(out, ops, at))
	}
	r.where[out] = l
	return nil
}
