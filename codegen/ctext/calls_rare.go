package ctext

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// between returns the row of an op's first argument and the row of its result.
func (r *Rows) between(op *ir.Op, at int) (src, dst loc, err error) {
	if src, err = r.contiguous(op.Args[0].Value); err != nil {
		return src, dst, err
	}
	if dst, err = r.place(op.Results[0], at); err == nil {
		r.where[op.Results[0]] = dst
	}
	return src, dst, err
}

// route emits the routing of a row to its experts.
func (r *Rows) route(ops []*ir.Op, at int) error {
	op := ops[at]
	src, err := r.contiguous(op.Args[0].Value)
	if err != nil {
		return err
	}
	bias, ids := "NULL", "NULL"
	switch {
	case op.Bool("by_id"):
		table, err := r.Weight(op.Args[2], r.loop)
		if err != nil {
			return err
		}
		ids = fmt.Sprintf("(const float *)(%s) + (int64_t)%s * %d", table, input(op.Args[1].Value), layout.Round16(op.Args[2].Type.Cols()))
	case len(op.Args) > 1:
		if bias, err = r.Weight(op.Args[1], r.loop); err != nil {
			return err
		}
	}
	out := op.Results[0]
	dst, err := r.place(out, at)
	if err != nil {
		return err
	}
	if op.Word("score") == "sparsemixer" {
		r.w.P("ifl_row_sparsemixer(%s, %s, %d, %s, %s);", dst.ptr, src.ptr, out.Type.Cols(), Float(op.Float("jitter")), Float(op.Float("scale")))
		r.where[out] = dst
		return nil
	}
	r.w.P("ifl_row_route(%s, %s, %s, %d, %d, IFL_ROUTE_%s, %d, %s, %d, %d, %d, %s);", dst.ptr, src.ptr, bias, out.Type.Cols(), op.Int("top_k"),
		strings.ToUpper(op.Word("score")), Bit(op.Bool("norm")), Float(op.Float("scale")), op.Int("groups"), op.Int("top_groups"), Bit(op.Word("group_score") == "top2"), ids)
	r.where[out] = dst
	return nil
}

// softmax emits the normalized exponential of a row.
func (r *Rows) softmax(ops []*ir.Op, at int) error {
	op := ops[at]
	src, dst, err := r.between(op, at)
	if err != nil {
		return err
	}
	r.w.P("ifl_row_softmax(%s, %s, %s);", dst.ptr, src.ptr, r.Width(op.Args[0].Type.Cols()))
	return nil
}

func (r *Rows) joinHeads(ops []*ir.Op, at int) error {
	op := ops[at]
	a, err := r.contiguous(op.Args[0].Value)
	if err != nil {
		return err
	}
	b, err := r.contiguous(op.Args[1].Value)
	if err != nil {
		return err
	}
	dst, err := r.place(op.Results[0], at)
	if err != nil {
		return err
	}
	heads, bHeads := op.Int("heads"), op.Int("b_heads")
	r.w.P("ifl_row_join_heads(%s, %s, %s, %d, %d, %d, %d);", dst.ptr, a.ptr, b.ptr, heads, op.Args[0].Type.Cols()/heads, op.Args[1].Type.Cols()/bHeads, bHeads)
	r.where[op.Results[0]] = dst
	return nil
}

func (r *Rows) headCols(ops []*ir.Op, at int) error {
	op := ops[at]
	x, dst, err := r.between(op, at)
	if err != nil {
		return err
	}
	heads, lo, cols := op.Int("heads"), strconv.Itoa(op.IntAt("lo", 0)), op.IntAt("hi", 0)-op.IntAt("lo", 0)
	if list := op.Ints("lo"); len(list) > 1 {
		lo = r.w.Table("int32_t", "first_"+layout.CName(op.Results[0].Name), Ints(list)) + "[" + Iteration(r.loop) + "]"
	}
	r.w.P("ifl_row_head_cols(%s, %s, %d, %d, %s, %d);", dst.ptr, x.ptr, heads, op.Args[0].Type.Cols()/heads, lo, cols)
	return nil
}

// unfold joins the rows around the token's own, within the rows of its sequence.
func (r *Rows) unfold(ops []*ir.Op, at int) error {
	op := ops[at]
	x := op.Args[0].Value
	from, err := r.buffer(x)
	if err != nil {
		return err
	}
	dst, err := r.place(op.Results[0], at)
	if err != nil {
		return err
	}
	r.w.P("ifl_row_unfold(%s, %s, %d, %d, %d, %d, t, s->first[s->seq[t]], s->first[s->seq[t] + 1]);", dst.ptr, r.Row(from, "t"), from.Pitch, x.Type.Cols(), op.Int("before"), op.Int("after"))
	r.where[op.Results[0]] = dst
	return nil
}

// sinusoid fills a row of sines and cosines of the token's position.
func (r *Rows) sinusoid(list []*ir.Op, at int) error {
	op := list[at]
	dst, err := r.place(op.Results[0], at)
	if err != nil {
		return err
	}
	var fs []string
	divide := op.Word("exponent") == "dim"
	for c, f := range ops.SinusoidFreqs(op) {
		v := float64(f)
		if divide {
			v = math.Pow(10000, 2*float64(c)/float64(op.Int("dim")))
		}
		fs = append(fs, fmt.Sprintf("%.17g", v))
	}
	table := r.w.Table("double", "freqs_"+layout.CName(op.Results[0].Name), "{"+strings.Join(fs, ", ")+"}")
	r.w.P("ifl_row_sinusoid(%s, %s, %s, %d, %d, %d);", dst.ptr, Plus(input(op.Args[0].Value), strconv.Itoa(op.Int("offset"))), table,
		op.Int("dim")/2, Bit(divide), Bit(op.Word("layout") == "pairs"))
	r.where[op.Results[0]] = dst
	return nil
}

// positionScale computes the factor of the token's position.
func (r *Rows) positionScale(list []*ir.Op, at int) error {
	op := list[at]
	dst, err := r.place(op.Results[0], at)
	if err != nil {
		return err
	}
	r.w.P("ifl_row_position_scale(%s, %s, %d, %s);", dst.ptr, Plus(input(op.Args[0].Value), strconv.Itoa(op.Int("offset"))), op.Int("floor"), Float(op.Float("by")))
	r.where[op.Results[0]] = dst
	return nil
}

// reduce computes one number of a row.
func (r *Rows) reduce(list []*ir.Op, at int) error {
	op := list[at]
	src, dst, err := r.between(op, at)
	if err != nil {
		return err
	}
	least := ""
	if op.Word("kind") == "rms" {
		least = ", " + Float(op.Float("min"))
	}
	r.w.P("ifl_row_%s(%s, %s, %s%s);", op.Word("kind"), dst.ptr, src.ptr, r.Width(op.Args[0].Type.Cols()), least)
	return nil
}

// part returns the address of a rank's row in the last exchange.
func (r *Rows) part(rank int, x *ir.Value) string {
	return fmt.Sprintf("%s + (int64_t)t * %d", r.Backend.Part(rank, x), layout.Round16(x.Type.Cols()))
}

// sum adds the ranks' rows in the order of ranks, so that it is bit-identical on
// every rank.
func (r *Rows) sum(op *ir.Op) string {
	sum := ""
	for m := range op.Int("ranks") {
		p := r.Backend.Load(Plus(r.part(m, op.Args[0].Value), "j"))
		if m == 0 {
			sum = p
		} else {
			sum = "(" + sum + " + " + p + ")"
		}
	}
	return sum
}

// gather concatenates the ranks' rows.
func (r *Rows) gather(list []*ir.Op, at int) error {
	op := list[at]
	x, out := op.Args[0].Value, op.Results[0]
	dst, err := r.place(out, at)
	if err != nil {
		return err
	}
	for m := range op.Int("ranks") {
		r.w.P("%s", r.Backend.Copy(Plus(dst.ptr, strconv.Itoa(ops.GatherAt(op, m))), r.part(m, x), x.Type.Cols()))
	}
	r.where[out] = dst
	return nil
}
