package ctext

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// RecurrentFields are the C expressions of the arguments of an op on a fixed-size state
// on every target.
type RecurrentFields struct {
	Cells  string   // address of the element's first cell
	Fields []string // initializers of the op's struct, without cells
}

// Recurrent writes the tables of an op on a fixed-size state and returns the C
// expressions of its arguments.
func (s *Symbols) Recurrent(w *Writer, r *layout.Region, work *layout.Recurrent) (f RecurrentFields, err error) {
	if f.Cells, err = s.Cells(work.Op.Args[0], r.Loop); err != nil {
		return f, err
	}
	x := &recurrentText{Symbols: s, w: w, region: r, work: work}
	switch work.Op.Def {
	case ops.ShortConv, ops.TokenShift:
		x.conv()
	case ops.RGLRU:
		x.value("x", "ldx", 1)
		x.value("log_a", "lda", 2)
		x.add(".cols = %d", work.Out.Cols)
	case ops.SelectiveScan:
		for i, name := range []string{"x", "dt", "b", "c"} {
			x.value(name, "ld"+name, i+1)
		}
		x.weight("a", 5)
		shape := work.Op.Args[0].State.Fields[0].Shape
		x.add(".channels = %d, .states = %d", shape[0], shape[1])
	case ops.LinearRecurrence:
		x.linear()
	}
	x.add(".out = %s, .ldo = %d", s.Rows(work.Out), work.Out.Pitch)
	f.Fields = x.fields
	return f, x.err
}

// Cells returns the address of the first cell of the state element that an argument
// names.
func (s *Symbols) Cells(a ir.Arg, in *layout.Loop) (string, error) {
	st := s.Layout.FixedState(a.Value)
	i, array, err := st.Index(a, in)
	if err != nil {
		return "", err
	}
	at := Plus(wide(st.At), layer(array, st.Lo, st.Cell))
	if strings.Contains(at, " ") {
		at = "(" + at + ")"
	}
	return s.element(st.Symbol, "("+s.Backend.Cells(at)+")", array, i), nil
}

// A recurrentText collects the initializers of an op's struct.
type recurrentText struct {
	*Symbols
	w      *Writer
	region *layout.Region
	work   *layout.Recurrent
	fields []string
	err    error
}

func (x *recurrentText) add(format string, args ...any) {
	x.fields = append(x.fields, fmt.Sprintf(format, args...)+",")
}

// value adds an argument that is rows; index 0: the op has none.
func (x *recurrentText) value(name, pitch string, index int) {
	if index > 0 {
		x.add(".%s = %s, .%s = %d", name, x.Rows(x.work.Args[index]), pitch, x.work.Args[index].Pitch)
	}
}

// weight adds an argument that is a weight; index 0: the op has none.
func (x *recurrentText) weight(name string, index int) {
	if index == 0 {
		return
	}
	text, err := x.Weight(x.work.Op.Args[index], x.region.Loop)
	if err != nil {
		x.err = err
	}
	x.add(".%s = (const float *)(%s)", name, text)
}

func (x *recurrentText) conv() {
	op := x.work.Op
	taps := 2
	x.value("x", "ldx", 1)
	if op.Def == ops.ShortConv {
		taps = op.Args[0].State.Fields[0].Shape[0] + 1
		x.weight("w", 2)
		x.add(".ldw = %d", layout.Round16(x.work.Out.Cols))
		if len(op.Args) > 3 {
			x.weight("bias", 3)
		}
	}
	x.add(".cols = %d, .taps = %d, .silu = %d", x.work.Out.Cols, taps, Bit(x.work.Silu))
}

func (x *recurrentText) linear() {
	op := x.work.Op
	s := ops.RecurrenceShapeOf(op)
	x.value("q", "ldq", 1)
	x.value("k", "ldk", 2)
	x.value("v", "ldv", 3)
	x.value("decay", "lddecay", s.Decay)
	x.value("beta", "ldbeta", s.Beta)
	x.value("erase", "lderase", s.Erase)
	x.value("write", "ldwrite", s.Write)
	x.weight("skip", s.Skip)
	if slopes := op.Floats("slopes"); len(slopes) > 0 {
		x.add(".slopes = %s", x.w.Table("float", "slopes", Floats(slopes)))
		scale := op.Attrs
		v, ok := scale.Get("slope_scale")
		list, perLayer := v.([]float64)
		switch {
		case ok && perLayer && x.region.Loop != nil:
			x.add(".slope_scale = %s[%s]", x.w.Table("float", "slope_scale", Floats(list)), Iteration(x.region.Loop))
		default:
			x.add(".slope_scale = %s", Float(op.Float("slope_scale")))
		}
	}
	x.add(".heads = %d, .key_heads = %d, .dim = %d, .vdim = %d", s.Heads, s.KeyHeads, s.KeyDim, s.ValueDim)
	x.add(".decays = IFL_DECAY_%s, .delta = IFL_DELTA_%s", strings.ToUpper(op.Word("decay")), strings.ToUpper(op.Word("delta")))
	x.add(".scale = %s", Float(op.Float("scale")))
}
