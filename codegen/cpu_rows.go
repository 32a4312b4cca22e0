package codegen

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A loc is where a slice of one row of a value lies: vector i of 16 floats at
// ptr + i·step.
type loc struct {
	ptr  string // C expression of type float *
	step int    // 16, or 32 for one part of an interleaved pair
	own  bool   // in scratch or in the kernel's output: may be overwritten
}

// at is the C expression of what the loop's variable j stands at in the slice.
func (r *rowCode) at(l loc) string {
	if l.step == 16 {
		return l.ptr + " + j"
	}
	return fmt.Sprintf(r.g.spell.strided, l.ptr, l.step/16)
}

// A rowCode emits the ops of one region for one row (C variable t), or for the
// slice of a row that a tile holds.
type rowCode struct {
	g      *cpuGen
	layer  string                                     // C expression of the index in the enclosing repeat, or ""
	repeat *ir.Op                                     // that repeat
	row    map[string]string                          // role of a value's rows → C expression of its row index
	base   func(*ir.Value) string                     // first column of the slice of a value; "0" for whole rows
	width  func(*ir.Value) string                     // columns of the slice, a multiple of 16 unless it is the whole row
	head   func(*ir.Value, int) (first, count string) // heads of the given width in the slice
	keep   func(*ir.Value) bool                       // must the value be written to its buffer?
	has    func(*ir.Value) bool                       // is the value in this slice? nil: all are
	where  map[*ir.Value]loc                          // values of the region so far
	reg    map[*ir.Value]string                       // values in registers of the current loop
	last   map[*ir.Value]int                          // index of the last op that uses a value
	temps  int
}

// run emits the ops in order: runs of elementwise ops become one loop, the
// others calls.
func (r *rowCode) run(ops []*ir.Op) error {
	r.last = map[*ir.Value]int{}
	for i, op := range ops {
		for _, a := range op.Args {
			r.last[a.Value] = i
		}
	}
	for i := 0; i < len(ops); {
		j := i
		for j < len(ops) && inLoop(ops[j]) && r.sameWidth(ops[i], ops[j]) {
			j++
		}
		if j > i {
			if err := r.loop(ops, i, j); err != nil {
				return err
			}
			i = j
			continue
		}
		if err := r.call(ops, i); err != nil {
			return err
		}
		i++
	}
	return nil
}

// inLoop says whether an op is an expression over the vectors of a row.
func inLoop(op *ir.Op) bool { return op.Def.Is(ir.Elementwise) || op.Def.Name == "all_reduce" }

func (r *rowCode) sameWidth(a, b *ir.Op) bool {
	return a.Results[0].Type.Cols() == b.Results[0].Type.Cols() && r.base(a.Results[0]) == r.base(b.Results[0])
}

// loop emits ops[i:j] as one loop over vectors of 16.
func (r *rowCode) loop(ops []*ir.Op, i, j int) error {
	r.reg = map[*ir.Value]string{}
	out := ops[i].Results[0]
	type store struct{ at, reg string }
	var body []string
	var stores []store
	for k := i; k < j; k++ {
		op, res := ops[k], ops[k].Results[0]
		expr, err := r.expr(op, &body)
		if err != nil {
			return err
		}
		name := "v_" + cName(res.Name)
		body = append(body, fmt.Sprintf("const %s %s = %s;", r.g.spell.vector, name, expr))
		r.reg[res] = name
		last, here := r.last[res]
		if r.keep(res) || last >= j || !here { // what no op here reads is read behind them: by the packing of a matmul's rows
			l := r.place(res, ops, k)
			r.where[res] = l
			stores = append(stores, store{r.at(l), name})
		}
	}
	r.g.w.p(r.g.spell.loop, r.width(out))
	for _, l := range body {
		r.g.w.p("%s", l)
	}
	for _, s := range stores {
		r.g.w.p(r.g.spell.store, s.at, s.reg)
	}
	r.g.w.p("}")
	r.g.spell.sync(r.g.w)
	r.reg = nil
	return nil
}

// expr is the C expression of an elementwise op over the registers.
func (r *rowCode) expr(op *ir.Op, body *[]string) (string, error) {
	if op.Def.Name == "all_reduce" {
		return r.sum(op), nil
	}
	if op.Def.Expr == "" {
		return "", fmt.Errorf("%s: no C expression", pos(op))
	}
	e := op.Def.Expr
	for i, a := range op.Args {
		reg, err := r.load(a, op.Results[0], body)
		if err != nil {
			return "", err
		}
		e = strings.ReplaceAll(e, fmt.Sprintf("{%d}", i), reg)
	}
	for _, d := range op.Def.Attrs {
		hole := "{" + d.Name + "}"
		if !strings.Contains(e, hole) {
			continue
		}
		f, err := r.number(op, d.Name)
		if err != nil {
			return "", err
		}
		e = strings.ReplaceAll(e, hole, f)
	}
	return e, nil
}

// number is an attribute as a C literal, or an element of a table of one per
// iteration of the repeat.
func (r *rowCode) number(op *ir.Op, name string) (string, error) {
	v, ok := op.Attrs.Get(name)
	if !ok {
		return cFloat(op.Float(name)), nil
	}
	switch v := v.(type) {
	case float64:
		return cFloat(v), nil
	case int:
		return cFloat(float64(v)), nil
	case []float64:
		if r.layer != "" {
			return r.g.spell.table(r.g.w, cFloats(v)) + "[" + r.iteration() + "]", nil
		}
	}
	return "", fmt.Errorf("%s: attribute %s is not a number here", pos(op), name)
}

func (r *rowCode) iteration() string {
	if lo := r.repeat.Int("lo"); lo > 0 {
		return fmt.Sprintf("%s - %d", r.layer, lo)
	}
	return r.layer
}

// load is a register that holds the vector of an argument at column j.
func (r *rowCode) load(a ir.Arg, out *ir.Value, body *[]string) (string, error) {
	if reg, ok := r.reg[a.Value]; ok {
		return reg, nil
	}
	if a.Kind == ir.Weight {
		ptr, err := r.vector(a)
		if err != nil {
			return "", err
		}
		if a.Type.Cols() == 1 && out.Type.Cols() != 1 {
			return "(*(" + ptr + "))", nil
		}
		at := "j"
		if b := r.base(out); b != "0" {
			at = b + " + j"
		}
		return fmt.Sprintf(r.g.spell.load, ptr+" + "+at), nil
	}
	if a.Kind == ir.State || a.Type.Elem != tensor.F32 {
		return "", fmt.Errorf("%s is not a row of f32", a.Value)
	}
	l, err := r.find(a.Value, r.base(out))
	if err != nil {
		return "", err
	}
	name := "v_" + cName(a.Name)
	*body = append(*body, fmt.Sprintf("const %s %s = %s;", r.g.spell.vector, name, fmt.Sprintf(r.g.spell.load, r.at(l))))
	r.reg[a.Value] = name
	return name, nil
}

// vector is the address of a weight row.
func (r *rowCode) vector(a ir.Arg) (string, error) {
	p := r.g.weights[a.Value]
	if p.layout != "row" {
		return "", fmt.Errorf("%s is used both as a matrix and as a row", a.Value)
	}
	at, err := r.g.weightAt(a, r.layer)
	if err != nil {
		return "", err
	}
	return "(const float *)(" + at + ")", nil
}

// find is where an argument's slice, from column base on, lies: in the region,
// or in its buffer.
func (r *rowCode) find(v *ir.Value, base string) (loc, error) {
	if l, ok := r.where[v]; ok {
		return l, nil
	}
	s := r.g.slots[v]
	if s == nil {
		return loc{}, fmt.Errorf("bug: value %s has no buffer", v)
	}
	return loc{ptr: r.buffer(v, base), step: 16}, nil
}

// buffer is the address of a slice in the value's own buffer.
func (r *rowCode) buffer(v *ir.Value, base string) string {
	p := fmt.Sprintf("%s + (int64_t)%s * %d", r.g.slotPtr(v), r.row[v.Role()], round16(v.Type.Cols()))
	if base != "0" {
		p += " + " + base
	}
	return p
}

// place chooses where a new value goes: its buffer, or scratch.
func (r *rowCode) place(v *ir.Value, ops []*ir.Op, at int) loc {
	if r.keep(v) {
		return loc{ptr: r.buffer(v, r.base(v)), step: 16, own: r.last[v] <= at}
	}
	return r.scratch(v)
}

// scratch is a fresh row of the thread's scratch.
func (r *rowCode) scratch(v *ir.Value) loc {
	l := loc{ptr: fmt.Sprintf("own->row + %d * IFL_ROW", r.temps), step: 16, own: true}
	r.temps++
	r.g.need.rows = max(r.g.need.rows, r.temps)
	r.g.need.row = max(r.g.need.row, round16(v.Type.Cols()))
	return l
}

// copyTo emits a copy of a slice and gives the target.
func (r *rowCode) copyTo(v *ir.Value, from, to loc) loc {
	r.g.w.p(strings.TrimSuffix(r.g.spell.loop, "{")+r.g.spell.store, r.width(v), r.at(to), fmt.Sprintf(r.g.spell.load, r.at(from)))
	r.g.spell.sync(r.g.w)
	return to
}

// contiguous gives a slice with step 16, copying it to scratch if need be.
func (r *rowCode) contiguous(v *ir.Value) (loc, error) {
	l, err := r.find(v, r.base(v))
	if err != nil || l.step == 16 {
		return l, err
	}
	return r.copyTo(v, l, r.scratch(v)), nil
}

// cName makes an IR name a C identifier.
func cName(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '_'
	}, s)
}
