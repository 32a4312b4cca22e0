package ctext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A loc is the location of a slice of one row of a value: vector i of 16 floats is at
// ptr + i·step.
type loc struct {
	ptr  string // C expression of type float *
	step int    // 16, or more for one part of several that are interleaved
	own  bool   // in scratch or in the kernel's output: may be overwritten
}

// at returns the C expression of the address of column j, the loop variable, in the slice.
func (r *Rows) at(l loc) string {
	if l.step == 16 {
		return l.ptr + " + j"
	}
	return r.Backend.Interleaved(l.ptr, l.step/16)
}

// Rows emits the ops of a region for row t, or for a slice of it.
type Rows struct {
	*Symbols
	Temps   int // number of scratch rows
	Scratch int // floats of the widest
	// Width returns a C name for a number of columns, if there is one.
	Width func(columns int) string

	w     *Writer
	loop  *layout.Loop         // around the region
	keep  map[*ir.Value]bool   // values that are written to their buffers
	slice *slice               // nil: whole rows
	where map[*ir.Value]loc    // locations of the region's values
	reg   map[*ir.Value]string // values in registers of the current loop
	last  map[*ir.Value]int    // index of the last op that reads a value or a part of it
	reads map[*ir.Value]int    // number of uses as an argument
}

// NewRows returns an emitter for whole rows that stores the values in keep.
func (s *Symbols) NewRows(w *Writer, in *layout.Loop, keep map[*ir.Value]bool) *Rows {
	return &Rows{Symbols: s, Width: strconv.Itoa, w: w, loop: in, keep: keep, where: map[*ir.Value]loc{}}
}

// Source returns the address of the whole row of a value, after Run.
func (r *Rows) Source(v *ir.Value) (string, error) {
	l, err := r.contiguous(v)
	return l.ptr, err
}

// Run emits the ops in order: runs of elementwise ops become one loop, the
// others calls.
func (r *Rows) Run(ops []*ir.Op) error {
	r.last, r.reads = map[*ir.Value]int{}, map[*ir.Value]int{}
	for i, op := range ops {
		for _, a := range op.Args {
			r.last[a.Value] = i
			r.reads[a.Value]++
		}
	}
	for _, op := range slices.Backward(ops) {
		if op.Def.Name == "split" { // its parts share the memory of its argument
			for _, part := range op.Results {
				x := op.Args[0].Value
				r.last[x] = max(r.last[x], r.last[part])
			}
		}
	}
	for i := 0; i < len(ops); {
		j := i
		for j < len(ops) && inLoop(ops[j]) && r.sameWidth(ops[i], ops[j]) {
			j++
		}
		if j > i {
			if err := r.columns(ops, i, j); err != nil {
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

// inLoop reports whether an op is an expression over the vectors of a row.
func inLoop(op *ir.Op) bool { return op.Def.Is(ir.Elementwise) || op.Def.Name == "all_reduce" }

func (r *Rows) sameWidth(a, b *ir.Op) bool {
	return a.Results[0].Type.Cols() == b.Results[0].Type.Cols() && r.base(a.Results[0]) == r.base(b.Results[0])
}

// columns emits ops[i:j] as one loop over columns.
func (r *Rows) columns(ops []*ir.Op, i, j int) error {
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
		name := r.register(res)
		body = append(body, fmt.Sprintf("const %s %s = %s;", r.Backend.Vector(), name, expr))
		r.reg[res] = name
		last, here := r.last[res]
		if r.keep[res] || last >= j || !here { // a value that no op here reads is read later, by the packing of a matmul's rows
			l, err := r.place(res, k)
			if err != nil {
				return err
			}
			r.where[res] = l
			stores = append(stores, store{r.at(l), name})
		}
	}
	r.w.P("%s", r.Backend.Loop(r.width(out)))
	for _, l := range body {
		r.w.P("%s", l)
	}
	for _, s := range stores {
		r.w.P("%s", r.Backend.Store(s.at, s.reg))
	}
	r.w.P("}")
	r.Backend.Sync(r.w)
	r.reg = nil
	return nil
}

// expr returns the C expression of an elementwise op over the registers.
func (r *Rows) expr(op *ir.Op, body *[]string) (string, error) {
	if op.Def.Name == "all_reduce" {
		return r.sum(op), nil
	}
	if op.Def.Expr == "" {
		return "", fmt.Errorf("%s: no C expression", layout.Position(op))
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

func (r *Rows) number(op *ir.Op, name string) (string, error) { return number(r.w, r.loop, op, name) }

// number returns an attribute as a C literal, or as an element of a table with one
// number per iteration of the loop.
func number(w *Writer, in *layout.Loop, op *ir.Op, name string) (string, error) {
	v, ok := op.Attrs.Get(name)
	if !ok {
		return Float(op.Float(name)), nil
	}
	switch v := v.(type) {
	case float64:
		return Float(v), nil
	case int:
		return Float(float64(v)), nil
	case []float64:
		if in != nil {
			table := w.Table("float", layout.CName(op.Results[0].Name)+"_"+name, Floats(v))
			return table + "[" + Iteration(in) + "]", nil
		}
	}
	return "", fmt.Errorf("%s: attribute %s is not a number here", layout.Position(op), name)
}

// Iteration returns the C expression of a loop's iteration, from 0.
func Iteration(in *layout.Loop) string {
	if in.Lo > 0 {
		return fmt.Sprintf("%s - %d", LayerIndex, in.Lo)
	}
	return LayerIndex
}

// load returns a register with the vector of an argument at column j.
func (r *Rows) load(a ir.Arg, out *ir.Value, body *[]string) (string, error) {
	if reg, ok := r.reg[a.Value]; ok {
		return reg, nil
	}
	if a.Kind == ir.Weight {
		ptr, err := r.Weight(a, r.loop)
		if err != nil {
			return "", err
		}
		if spreads(a, out) {
			return "(*" + ptr + ")", nil
		}
		return r.Backend.Load(Plus(ptr, r.base(out), "j")), nil
	}
	if a.Kind == ir.State || a.Type.Elem != tensor.F32 {
		return "", fmt.Errorf("%s is not a row of f32", a.Value)
	}
	if spreads(a, out) {
		l, err := r.find(a.Value, "0")
		return "(*(" + l.ptr + "))", err
	}
	l, err := r.find(a.Value, r.base(out))
	if err != nil {
		return "", err
	}
	name := r.register(a.Value)
	*body = append(*body, fmt.Sprintf("const %s %s = %s;", r.Backend.Vector(), name, r.Backend.Load(r.at(l))))
	r.reg[a.Value] = name
	return name, nil
}

// spreads reports whether an argument is one number for all columns.
func spreads(a ir.Arg, out *ir.Value) bool { return a.Type.Cols() == 1 && out.Type.Cols() != 1 }

// register names a register of the loop after a value; a number makes equal C names
// unique.
func (r *Rows) register(v *ir.Value) string {
	name := "v_" + layout.CName(v.Name)
	for _, other := range r.reg {
		if other == name {
			return fmt.Sprintf("%s_r%d", name, len(r.reg))
		}
	}
	return name
}

// find returns the location of an argument's slice, from column base on: in the
// region or in the value's buffer.
func (r *Rows) find(v *ir.Value, base string) (loc, error) {
	if l, ok := r.where[v]; ok {
		return l, nil
	}
	return r.stored(v, base)
}

// stored returns the address of a slice in the value's buffer.
func (r *Rows) stored(v *ir.Value, base string) (loc, error) {
	p, err := r.buffer(v)
	if err != nil {
		return loc{}, err
	}
	return loc{ptr: Plus(r.Row(p, "t"), base), step: 16}, nil
}

// buffer returns the location of a value's rows.
func (r *Rows) buffer(v *ir.Value) (layout.Place, error) {
	p, ok := r.Layout.Place(v)
	if !ok {
		return p, fmt.Errorf("bug: value %s has no place", v)
	}
	return p, nil
}

// place selects the location of a new value: its buffer or scratch.
func (r *Rows) place(v *ir.Value, at int) (loc, error) {
	if !r.keep[v] {
		return r.scratch(v), nil
	}
	l, err := r.stored(v, r.base(v))
	l.own = r.last[v] <= at
	return l, err
}

// scratch returns a new scratch row.
func (r *Rows) scratch(v *ir.Value) loc { return r.scratchOf(v.Type.Cols()) }

// scratchOf returns a new scratch row of at least n floats.
func (r *Rows) scratchOf(n int) loc {
	at := "0"
	switch r.Temps {
	case 0:
	case 1:
		at = "IFL_ROW"
	default:
		at = fmt.Sprintf("%d * IFL_ROW", r.Temps)
	}
	r.Temps++
	r.Scratch = max(r.Scratch, layout.Round16(n))
	return loc{ptr: Plus("own->row", at), step: 16, own: true}
}

// copyTo emits a copy of a slice and returns the target.
func (r *Rows) copyTo(v *ir.Value, from, to loc) loc {
	loop := strings.TrimSuffix(r.Backend.Loop(r.width(v)), "{")
	r.w.P("%s%s", loop, r.Backend.Store(r.at(to), r.Backend.Load(r.at(from))))
	r.Backend.Sync(r.w)
	return to
}

// contiguous returns a slice with step 16; it copies it to scratch if necessary.
func (r *Rows) contiguous(v *ir.Value) (loc, error) {
	l, err := r.find(v, r.base(v))
	if err != nil || l.step == 16 {
		return l, err
	}
	return r.copyTo(v, l, r.scratch(v)), nil
}
