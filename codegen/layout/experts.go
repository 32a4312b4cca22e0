package layout

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Experts is the feed-forward network of a mixture of experts.
type Experts struct {
	X, Route, Out  Place
	Act            tensor.DType // packing of rows of X
	HiddenAct      tensor.DType // packing of hidden rows
	Outliers       int          // outlier groups per row of X
	Count          int          // experts
	Hidden         int          // columns of a hidden row
	TopK           int          // maximum experts per row
	Activation     string       // silu, gelu, …
	Limit, Alpha   float64
	ScaleInput     bool    // the route's weights multiply the input
	Gate, Up, Down *Expert // Up may be nil
}

// An Expert is one of the matrices that every expert has.
type Expert struct {
	Arg    ir.Arg
	Weight *Weight
	Bias   *ir.Arg // or nil
	Call   Call
}

func (s *scheduler) experts(op *ir.Op) error {
	sh := ops.ExpertsShapeOf(op)
	if sh.Experts > MaxExperts {
		return fmt.Errorf("%s: %d experts; a mixture has at most %d", Position(op), sh.Experts, MaxExperts)
	}
	x, act, outliers := packedRows(op.Args[0].Value)
	route := op.Args[1].Value
	e := &Experts{
		Out: s.l.places[op.Results[0]], Act: act, HiddenAct: tensor.F32, Outliers: outliers, Count: sh.Experts, Hidden: sh.Hidden,
		TopK: routed(route, sh.Experts), Activation: op.Word("act"), Limit: ops.ExpertLimit(op), Alpha: op.Float("alpha"),
		ScaleInput: op.Bool("scale_input"),
	}
	if op.Has("act_type") {
		e.HiddenAct = op.DType("act_type")
	}
	var err error
	if e.X, err = s.placed(op, x); err != nil {
		return err
	}
	if e.Route, err = s.placed(op, route); err != nil {
		return err
	}
	e.Gate, e.Up, e.Down = s.expert(op, sh.Gate, sh.BiasGate), s.expert(op, sh.Up, sh.BiasUp), s.expert(op, sh.Down, sh.BiasDn)
	s.add(&Region{Name: "experts", Doc: fmt.Sprintf("experts: %d of width %d, %d a row", e.Count, e.Hidden, e.TopK), Role: x.Role(), Work: e})
	return nil
}

// expert returns the matrix at an index of the op's arguments; nil for index 0.
func (s *scheduler) expert(op *ir.Op, at, bias int) *Expert {
	if at == 0 {
		return nil
	}
	e := &Expert{Arg: op.Args[at], Weight: s.l.Weights[op.Args[at].Value]}
	if bias > 0 {
		e.Bias = &op.Args[bias]
	}
	e.Call = s.call(op, e.Weight)
	return e
}

// routed returns the maximum number of this rank's experts that a row uses. If the
// experts are divided among ranks, each rank has its columns of the routes.
func routed(route *ir.Value, experts int) int {
	for route.Op != nil && (slices.Contains([]string{"head_cols", "l2norm", "split"}, route.Op.Def.Name) || route.Op.Def.Name == "mul" && route.Op.Args[1].Kind == ir.Weight) {
		route = route.Op.Args[0].Value
	}
	if route.Op == nil || route.Op.Def.Name != "route" {
		return experts // by weights that are made in another way
	}
	return min(route.Op.Int("top_k"), experts)
}
