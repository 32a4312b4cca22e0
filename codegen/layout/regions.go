package layout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
)

// A Region is the computation of one function of the step, for all rows of a role.
type Region struct {
	Number int    // in order of execution
	Name   string // "wqkv", "attention"
	Doc    string // its ops in order
	Role   string // of its rows: "tokens", "out_rows" or "sequences"
	Graph  *Graph
	Loop   *Loop // the enclosing loop, or nil
	Work   Work
}

// Function returns the region's name in C.
func (r *Region) Function() string { return fmt.Sprintf("r%d_%s", r.Number, CName(r.Name)) }

// Work is the kind of a region's computation: a *[Rows], *[Matmul], *[Attention],
// *[Recurrent], *[Experts], *[Exchange] or *[Copy].
type Work interface{ work() }

func (*Rows) work()      {}
func (*Matmul) work()    {}
func (*Attention) work() {}
func (*Recurrent) work() {}
func (*Experts) work()   {}
func (*Exchange) work()  {}
func (*Copy) work()      {}

// Rows are ops that are computed row by row.
type Rows struct {
	Ops  []*ir.Op
	Keep map[*ir.Value]bool // values that outlive the region
}

// A Copy copies the rows of a value.
type Copy struct {
	From, To Place
	Value    *ir.Value
}

// An Exchange transfers data to or from other ranks. Rows, which start with the
// all_reduce or all_gather op, compute the sum or concatenate the rows.
type Exchange struct {
	Op     string // send, recv, all_reduce, all_gather
	Peer   int    // rank of send and recv
	TPSize int    // ranks of the TP group of all_reduce and all_gather
	Value  *ir.Value
	Place  Place // place of Value: a buffer
	Rows   *Rows // row ops after the exchange, or nil
}

// rowCalls lists the ops that are not elementwise and are computed row by row.
var rowCalls = []string{"rmsnorm", "layernorm", "l2norm", "softmax", "rope", "rope_table", "split", "concat", "kv_append", "embed", "rows", "route", "join_heads", "head_cols", "fill", "sinusoid", "position_scale", "reduce", "stream_weights", "mix_streams", "merge_attention"}

// isRowOp reports whether an op is computed row by row.
func isRowOp(op *ir.Op) bool {
	return op.Def.Is(ir.Elementwise) || slices.Contains(rowCalls, op.Def.Name)
}

func opNames(ops []*ir.Op) string {
	var names []string
	for _, op := range ops {
		names = append(names, op.Def.Name)
	}
	return strings.Join(names, ", ")
}

func (s *scheduler) rows(ops []*ir.Op) error {
	work, err := s.rowsOf(ops)
	if err != nil || work == nil {
		return err
	}
	s.add(&Region{Name: ops[len(ops)-1].Def.Name, Doc: "Row by row: " + opNames(ops), Role: firstRow(ops[0]).Role(), Work: work})
	return nil
}

// rowsOf returns the region of some row ops, with the results that outlive them and the
// places of their float inputs; nil if all results are views.
func (s *scheduler) rowsOf(ops []*ir.Op) (*Rows, error) {
	work := &Rows{Ops: ops, Keep: map[*ir.Value]bool{}}
	for _, op := range ops {
		if op.Def.Name == "rows" {
			if err := s.picked(op.Args[0].Value); err != nil {
				return nil, fmt.Errorf("%s: %w", Position(op), err)
			}
		}
		for _, r := range op.Results {
			outside := func(u ir.Use) bool { return u.Op == nil || !slices.Contains(ops, u.Op) }
			if slices.ContainsFunc(s.uses[r], outside) {
				rows, _ := s.l.rowsWith(r)
				work.Keep[rows] = true
				s.l.keep(r)
			}
		}
	}
	if !slices.ContainsFunc(ops, func(op *ir.Op) bool { return !s.l.isView(op) }) {
		return nil, nil
	}
	return work, nil
}

// picked checks that a value is in memory, so that rows of it can be selected.
func (s *scheduler) picked(x *ir.Value) error {
	if _, ok := s.l.places[x]; !ok {
		return fmt.Errorf("rows of a value without a buffer")
	}
	return nil
}

// exchange adds the region of an exchange, with the row ops after it.
func (s *scheduler) exchange(op *ir.Op, behind []*ir.Op) error {
	x := &Exchange{Op: op.Def.Name}
	doc := ""
	switch x.Op {
	case "send":
		x.Value, x.Peer = op.Args[0].Value, op.Int("to")
		doc = fmt.Sprintf("send %s to rank %d", x.Value, x.Peer)
	case "recv":
		x.Value, x.Peer = op.Results[0], op.Int("from")
		s.l.keep(x.Value)
		doc = fmt.Sprintf("recv %s from rank %d", x.Value, x.Peer)
	default:
		x.Value, x.TPSize = op.Args[0].Value, op.Int("ranks")
		doc = fmt.Sprintf("%s of %d ranks: %s", x.Op, x.TPSize, x.Value)
	}
	for _, o := range behind {
		doc += ", " + o.Def.Name
	}
	if x.TPSize > 0 {
		behind = append([]*ir.Op{op}, behind...)
	}
	place, ok := s.l.places[x.Value]
	if !ok || place.Buffer == nil {
		return fmt.Errorf("%s: %s has no buffer and cannot be sent", Position(op), x.Value)
	}
	x.Place = place
	if len(behind) > 0 {
		var err error
		if x.Rows, err = s.rowsOf(behind); err != nil {
			return err
		}
	}
	s.add(&Region{Name: x.Op, Doc: doc, Role: x.Value.Role(), Work: x})
	return nil
}
