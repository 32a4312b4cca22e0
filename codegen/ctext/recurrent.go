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
	Type   string   // of the op's struct, and the name of its function, after ifl_ and ifl_run_
	Cells  string   // initializers of its cells: the element's first cell, and the floats of a cell
	Fields []string // its other initializers
}

// recurrentTypes are the types of the ops' structs.
var recurrentTypes = map[*ir.OpDef]string{ops.ShortConv: "conv", ops.TokenShift: "conv", ops.RGLRU: "lru", ops.SelectiveScan: "scan", ops.LinearRecurrence: "recurrence", ops.PoolRows: "pooling"}

// Recurrent writes the tables of an op on a fixed-size state and returns the C
// expressions of its arguments.
func (s *Symbols) Recurrent(w *Writer, r *layout.Region, work *layout.Recurrent) (f RecurrentFields, err error) {
	cells, err := s.Cells(work.Op.Args[0], r.Loop)
	if err != nil {
		return f, err
	}
	f.Type = recurrentTypes[work.Op.Def]
	f.Cells = fmt.Sprintf(".base = (float *)%s, .start = %d, .row = %d", cells, work.State.Start, work.State.Row)
	x := &recurrentText{Symbols: s, w: w, region: r, work: work}
	switch work.Op.Def {
	case ops.ShortConv, ops.TokenShift:
		x.conv()
	case ops.RGLRU:
		x.value("x", "ldx", 1)
		x.value("log_a", "lda", 2)
		x.add(".cols = %d", work.Out.Cols)
	case ops.PoolRows:
		x.value("x", "ldx", 1)
		x.value("gate", "ldg", 2)
		x.weight("bias", 3)
		x.add(".ldbias = %d", layout.Round16(work.Op.Args[3].Type.Cols()))
		x.add(".cols = %d, .every = %d, .overlap = %d", work.Out.Cols, work.Op.Int("every"), Bit(work.Op.Bool("overlap")))
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
	x.value("x", "ldx", 1)
	if op.Def == ops.ShortConv {
		x.weight("w", 2)
		x.add(".ldw = %d", layout.Round16(x.work.Out.Cols))
		if len(op.Args) > 3 {
			x.weight("bias", 3)
		}
	}
	x.add(".cols = %d, .taps = %d, .silu = %d", x.work.Out.Cols, x.work.Taps, Bit(x.work.Silu))
}

func (x *recurrentText) linear() {
	op := x.work.Op
	s := x.work.Shape
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
		scale, err := number(x.w, x.region.Loop, op, "slope_scale")
		if err != nil {
			x.err = err
		}
		x.add(".slope_scale = %s", scale)
	}
	x.add(".heads = %d, .key_heads = %d, .dim = %d, .vdim = %d", s.Heads, s.KeyHeads, s.KeyDim, s.ValueDim)
	x.add(".decays = IFL_DECAY_%s, .delta = IFL_DELTA_%s", strings.ToUpper(op.Word("decay")), strings.ToUpper(op.Word("delta")))
	x.add(".scale = %s", Float(op.Float("scale")))
}
