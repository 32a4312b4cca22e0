package templates

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
)

// A Tail plans the epilogue of a matmul: the ops that are computed on each tile of
// its output. The output's columns are divided into segments, each with its own
// ops, and every op reads columns of only one group of a segment.
type Tail struct {
	Group    int // columns that must be in one tile: a multiple of 16
	Segments []*Segment
	Halves   map[*ir.Value]int // values of an interleaved split → number of parts
	Whole    bool              // one segment with only elementwise ops: a run of groups may be one slice
}

// A Segment is a range of columns Lo ≤ c < Hi of a matmul's output: all of them,
// or one part of a split.
type Segment struct {
	Lo, Hi int
	Value  *ir.Value // the root's result, or the part
	Ops    []*ir.Op
	In     map[*ir.Value]bool // values computed in this segment
}

// maxGroup is the maximum number of columns of a group. It bounds the shared memory
// of a GPU kernel.
const maxGroup = 1024

// PlanTail plans the ops that follow a matmul, in order. It returns an error that
// names the first op that cannot be computed on a tile of the output.
func PlanTail(root *ir.Op, ops []*ir.Op) (*Tail, error) {
	out := root.Results[0]
	if _, rest := Adapter(root, ops); len(rest) < len(ops) {
		out, ops = ops[0].Results[0], rest
	}
	t := &Tail{Group: 16, Halves: map[*ir.Value]int{}, Whole: true}
	t.Segments = []*Segment{{Lo: 0, Hi: out.Type.Cols(), Value: out, In: map[*ir.Value]bool{out: true}}}
	if len(ops) > 0 && root.Def.Attr("slices") != nil && root.Int("slices") > 1 {
		return nil, fmt.Errorf("op %s: a matmul of slices cannot have an epilogue", ops[0].Def.Name)
	}
	for i, op := range ops {
		if op.Def.Name == "split" {
			if err := t.split(op, i); err != nil {
				return nil, err
			}
			continue
		}
		if err := t.add(op); err != nil {
			return nil, err
		}
	}
	if t.Group > maxGroup {
		return nil, fmt.Errorf("groups of %d columns; a tile has at most %d", t.Group, maxGroup)
	}
	for i, s := range t.Segments {
		if s.Lo%t.Group != 0 || i+1 < len(t.Segments) && s.Hi%t.Group != 0 {
			return nil, fmt.Errorf("columns %d to %d are not whole groups of %d", s.Lo, s.Hi, t.Group)
		}
	}
	return t, nil
}

// Adapter returns the op that adds adapters to a matmul, if it is the first of the ops that
// follow it, else nil; and the ops after it. It adds to all columns before they are divided
// into groups.
func Adapter(root *ir.Op, ops []*ir.Op) (*ir.Op, []*ir.Op) {
	if len(ops) > 0 && ops[0].Def.Name == "lora" && ops[0].Args[0].Value == root.Results[0] {
		return ops[0], ops[1:]
	}
	return nil, ops
}

// split divides the single segment into parts, or records the parts of an
// interleaved split.
func (t *Tail) split(op *ir.Op, at int) error {
	if at != 0 || op.Args[0].Value != t.Segments[0].Value {
		return fmt.Errorf("op split: only the matmul's output can be split, and only as the first op")
	}
	if p := op.Int("panel"); p == 16 {
		n := len(op.Results)
		t.Group = 16 * n
		for _, r := range op.Results {
			t.Halves[r] = n
			t.Segments[0].In[r] = true
			if r.Type.Cols()%16 != 0 {
				return fmt.Errorf("op split: %s has %d columns, not whole panels of 16", r, r.Type.Cols())
			}
		}
		t.Segments[0].Ops = append(t.Segments[0].Ops, op)
		return nil
	}
	if op.Int("panel") > 0 {
		return fmt.Errorf("op split: interleaved runs of %d columns, expected panels of 16", op.Int("panel"))
	}
	t.Whole = false
	t.Segments = nil
	lo := 0
	for _, r := range op.Results {
		hi := lo + r.Type.Cols()
		t.Segments = append(t.Segments, &Segment{Lo: lo, Hi: hi, Value: r, In: map[*ir.Value]bool{r: true}})
		lo = hi
	}
	return nil
}

// holds returns the segment that computes an argument; nil if none does.
func (t *Tail) holds(a ir.Arg) *Segment {
	for _, s := range t.Segments {
		if s.In[a.Value] {
			return s
		}
	}
	return nil
}

// add appends an op to the segment of its arguments.
func (t *Tail) add(op *ir.Op) error {
	var segs []*Segment
	halves := 0
	for _, a := range op.Args {
		if s := t.holds(a); s != nil {
			if len(segs) == 0 || segs[len(segs)-1] != s {
				segs = append(segs, s)
			}
			halves = max(halves, t.Halves[a.Value])
		}
	}
	if len(segs) == 0 {
		return fmt.Errorf("op %s does not read the matmul's output", op.Def.Name)
	}
	switch {
	case op.Def.Is(ir.Elementwise):
		for _, a := range op.Args {
			switch {
			case t.holds(a) == nil:
			case t.Halves[a.Value] != halves:
				return fmt.Errorf("op %s reads both a part of an interleaved split and the whole output", op.Def.Name)
			case a.Type.Cols() != op.Results[0].Type.Cols():
				return fmt.Errorf("op %s moves values between columns of the output", op.Def.Name)
			}
		}
	case op.Def.Name == "kv_append":
		return t.appendRows(op)
	case op.Def.Name == "rope" || op.Def.Is(ir.PerHead) && op.Int("heads") > 1:
		if t.holds(op.Args[0]) == nil || halves > 0 {
			return fmt.Errorf("op %s needs whole heads of the output", op.Def.Name)
		}
		t.align(op.Args[0].Type.Cols() / op.Int("heads"))
	default:
		return fmt.Errorf("op %s needs whole rows of the output", op.Def.Name)
	}
	if len(segs) > 1 {
		return fmt.Errorf("op %s reads columns of several parts", op.Def.Name)
	}
	for _, r := range op.Results {
		segs[0].In[r] = true
		if halves > 0 {
			t.Halves[r] = halves
		}
	}
	segs[0].Ops = append(segs[0].Ops, op)
	return nil
}

// appendRows appends kv_append to the segments of its rows.
func (t *Tail) appendRows(op *ir.Op) error {
	for _, a := range op.Args[1:] {
		if t.holds(a) == nil || t.Halves[a.Value] > 0 {
			return fmt.Errorf("op kv_append: %s is not a range of columns of the output", a.Value)
		}
	}
	for i, f := range op.Args[0].State.Fields {
		t.align(f.Shape[len(f.Shape)-1])
		if s := t.holds(op.Args[1+i]); len(s.Ops) == 0 || s.Ops[len(s.Ops)-1] != op {
			s.Ops = append(s.Ops, op)
		}
	}
	return nil
}

// align enlarges the groups to whole heads.
func (t *Tail) align(width int) {
	t.Whole = false
	a, b := t.Group, width
	for b != 0 {
		a, b = b, a%b
	}
	t.Group = t.Group / a * width
}
