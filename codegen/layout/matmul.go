package layout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/templates"
)

// A Matmul is a matmul with a weight, with its prologue of row ops and its epilogue of
// ops that need only a tile of the output.
type Matmul struct {
	Root     *ir.Op
	Before   []*ir.Op // row ops, without the packing of activations
	X        *ir.Value
	Act      tensor.DType // type to which rows of X are packed
	Outliers int          // outlier groups per row
	Slices   int          // number of equal parts of a row of X, each a row of the matmul
	Arg      ir.Arg       // the weight
	Weight   *Weight
	Adapters *Adapters // nil: none can add to it
	Out      *ir.Value // the matmul's output, with adapters
	Tail     *templates.Tail
	Direct   bool               // no epilogue: the output is written to its buffer
	Keep     map[*ir.Value]bool // values that outlive the region
	Call     Call
}

// Groups returns the number of column groups of the output.
func (m *Matmul) Groups() int { return (Round16(m.Weight.N) + m.Tail.Group - 1) / m.Tail.Group }

// Pitch returns the distance in floats between rows of the matmul's output. With
// Slices it is less than a row of Out.
func (m *Matmul) Pitch() int { return Round16(m.Weight.N) }

// A Call is one use of a matrix. A dispatch table selects its kernel by the number of
// rows.
type Call struct {
	Name   string // "decode.wqkv"
	Weight *Weight
	kernel []ir.AnnotationArg // arguments of the !kernel annotation; nil: none
}

// call returns the Call of an op's use of a weight.
func (s *scheduler) call(op *ir.Op, w *Weight) Call {
	c := Call{Name: s.graph.Name + "." + w.Name, Weight: w}
	for _, n := range op.Annotations {
		if n.Name == "kernel" {
			c.kernel = append([]ir.AnnotationArg{}, n.Args...)
			break
		}
	}
	return c
}

// Defaults returns the minimum number of rows of each implementation for use without
// a profile; −1: never. Without an annotation the second implementation is always used,
// because it is reasonably fast for every number of rows.
func (c Call) Defaults(impls []string) []int {
	rows := make([]int, len(impls))
	for i := range rows {
		rows[i] = -1
	}
	if c.kernel == nil {
		rows[min(1, len(impls)-1)] = 1
		return rows
	}
	for _, a := range c.kernel {
		if i := slices.Index(impls, a.Val); i >= 0 {
			rows[i] = max(a.From, 1)
		}
	}
	return rows
}

// root adds the region of a fuse op, or of a root op without fusion.
func (s *scheduler) root(op *ir.Op) error {
	root, before, behind := op, []*ir.Op(nil), []*ir.Op(nil)
	if op.Def.Name == "fuse" {
		at := slices.IndexFunc(op.Body.Ops, func(o *ir.Op) bool { return o.Def.Is(ir.Root) })
		if at < 0 {
			return fmt.Errorf("%s: no root in the region", Position(op))
		}
		before, root, behind = op.Body.Ops[:at], op.Body.Ops[at], op.Body.Ops[at+1:]
	}
	s.keepResults(op)
	alone := len(before)+len(behind) == 0
	switch {
	case root.Def.Name == "matmul":
		return s.matmul(op, before, root, behind)
	case (root.Def == ops.SelectRows || root.Def == ops.Unfold) && alone: // reads rows that other threads write in the regions before
		return s.rows([]*ir.Op{root})
	case root.Def.Name == "attention" && alone:
		return s.attention(root)
	case root.Def.Name == "experts" && alone:
		return s.experts(root)
	case root.Def.Step != nil && alone:
		return s.recurrent(root, nil)
	case root.Def.Step != nil || root.Def.Name == "attention" || root.Def.Name == "experts":
		return fmt.Errorf("%s: %s cannot be fused with other ops", Position(op), root.Def.Name)
	}
	return fmt.Errorf("%s: no target supports this op", Position(root))
}

// keepResults assigns buffers to the results of an op; the values that a fuse op
// yields share the buffers of its results.
func (s *scheduler) keepResults(op *ir.Op) {
	for i, r := range op.Results {
		s.l.keep(r)
		if op.Def.Name == "fuse" {
			s.l.places[op.Body.Yield[i]] = s.l.places[r]
		}
	}
}

func (s *scheduler) matmul(op *ir.Op, before []*ir.Op, root *ir.Op, behind []*ir.Op) error {
	arg := root.Args[1]
	m := &Matmul{Root: root, Arg: arg, Weight: s.l.Weights[arg.Value], Out: root.Results[0], Slices: max(root.Int("slices"), 1), Direct: len(behind) == 0, Keep: map[*ir.Value]bool{}}
	m.X, m.Act, m.Outliers = packedRows(root.Args[0].Value)
	m.Call = s.call(op, m.Weight)
	var err error
	if lora, rest := templates.Adapter(root, behind); lora != nil {
		if lora.Args[1].Value != m.X {
			return fmt.Errorf("%s: %s is not the input of %s", Position(lora), lora.Args[1], m.Out)
		}
		if m.Adapters, err = s.l.adapters(lora); err != nil {
			return err
		}
		m.Out, m.Direct = lora.Result(), len(rest) == 0
	}
	if m.Tail, err = templates.PlanTail(root, behind); err != nil {
		return fmt.Errorf("%s: %w", Position(op), err)
	}
	for _, o := range before {
		if o.Def.Name != "quantize_act" {
			m.Before = append(m.Before, o)
		}
	}
	if m.Slices > 1 && (m.Weight.N%16 != 0 || len(m.Before) > 0) {
		return fmt.Errorf("%s: a matmul of slices needs a multiple of 16 weight rows, and only quantization before it; %s has %d rows", Position(op), arg.Value, m.Weight.N)
	}
	if op == root {
		m.Keep[m.Out] = true
	} else {
		for _, y := range op.Body.Yield {
			m.Keep[y] = true
		}
	}
	s.add(&Region{Name: arg.Name, Doc: m.doc(behind), Role: m.Out.Role(), Work: m})
	return nil
}

// packedRows returns the packing of an op's input x: the f32 value, the type to which
// it is quantized, and the number of outliers per row.
func packedRows(x *ir.Value) (rows *ir.Value, act tensor.DType, outliers int) {
	if x.Type.Elem == tensor.F32 {
		return x, tensor.F32, 0
	}
	if x.Op.Def.Name == "quantize_act" {
		outliers = x.Op.Int("outliers")
	}
	return x.Op.Args[0].Value, x.Type.Elem, outliers
}

// doc lists the region's ops.
func (m *Matmul) doc(behind []*ir.Op) string {
	var names []string
	for _, p := range m.Before {
		names = append(names, p.Def.Name)
	}
	if m.Act != tensor.F32 {
		names = append(names, "quantize_act")
	}
	names = append(names, fmt.Sprintf("matmul %s %s[%d, %d]", m.Arg.Value, m.Weight.DType, m.Weight.N, m.Weight.K))
	for _, o := range behind {
		names = append(names, o.Def.Name)
	}
	return strings.Join(names, " → ")
}
