package interp

import (
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// attention implements the op attention (ops.Attention): softmax over the visible rows,
// per token and head.
func (r *run) attention(o *ir.Op, name string, args []*tensor.Tensor) (*tensor.Tensor, error) {
	shape := ops.AttentionShapeOf(o)
	q := args[0]
	width := o.Results[0].Type.Cols()
	out := tensor.New(tensor.F32, q.Shape[0], width)
	ki, vi := fieldIndex(o.Args[1].State, "k"), fieldIndex(o.Args[1].State, "v")
	look := view{causal: o.Bool("causal"), cross: o.Bool("cross"), window: ops.Span(o, 0), global: o.Int("global"), source: o.Args[1].State.Source}
	for t := range q.Shape[0] {
		rows := r.states.visible(name, r.step, t, look)
		if shape.Selected > 0 {
			rows = among(rows, args[shape.Selected], t)
		}
		if every := o.Int("every"); every > 1 {
			rows = slices.DeleteFunc(rows, func(r *stateRow) bool { return (r.pos+1)%every != 0 })
		}
		if len(rows) == 0 && !o.Bool("lse") {
			return nil, fmt.Errorf("attention of token %d (sequence %d, position %d) sees no row of %s", t, r.step.Seq[t], r.step.Pos[t], name)
		}
		for h := range shape.Heads {
			group := h / (shape.Heads / shape.KVHeads)
			query := q.F[(t*shape.Heads+h)*shape.HeadDim:][:shape.HeadDim]
			var scores []float64
			for _, row := range rows {
				key := row.fields[ki][group*shape.HeadDim:][:shape.HeadDim]
				distance := row.pos - r.step.Pos[t]
				s := score(o, shape, query, key, r.tpRank, h, distance, contentScore(o, shape, args, query, key, h, distance))
				if shape.Rel > 0 {
					s += args[shape.Rel].At(relBucket(o, distance), h)
				}
				scores = append(scores, s)
			}
			if shape.Sinks > 0 {
				scores = append(scores, args[shape.Sinks].F[h])
			}
			if o.Bool("lse") {
				out.F[t*width+shape.Heads*shape.VDim+h] = logSum(scores)
			}
			ops.SoftmaxRow(scores)
			to := out.F[t*width+h*shape.VDim:][:shape.VDim]
			for i, row := range rows {
				for c, v := range row.fields[vi][group*shape.VDim:][:shape.VDim] {
					to[c] += scores[i] * v
				}
			}
		}
	}
	return out, nil
}

// logSum returns log Σ exp(x); −∞ of nothing.
func logSum(x []float64) float64 {
	top, sum := math.Inf(-1), 0.0
	for _, v := range x {
		top = math.Max(top, v)
	}
	for _, v := range x {
		sum += math.Exp(v - top)
	}
	return top + math.Log(sum)
}

// score returns one attention score before the softmax; distance is the row's position
// minus the token's, content the sum that is added to the product.
func score(o *ir.Op, shape ops.AttentionShape, q, k []float64, tpRank, head, distance int, content float64) float64 {
	s := content
	for i := range q {
		s += q[i] * k[i]
	}
	s *= shape.Scale
	if c := o.Float("softcap"); c != 0 {
		s = c * math.Tanh(s/c)
	}
	if slopes := o.Floats("alibi"); slopes != nil {
		s += slopes[(tpRank*shape.Heads+head)%len(slopes)] * -math.Abs(float64(distance)) // the slopes of all ranks, or of this rank
	}
	return s
}

// contentScore returns the products of content with the position at a distance.
func contentScore(o *ir.Op, shape ops.AttentionShape, args []*tensor.Tensor, q, k []float64, head, distance int) float64 {
	if shape.RelKeys == 0 && shape.RelQueries == 0 {
		return 0
	}
	s, at := 0.0, ops.RelIndex(o, distance)
	for i := range q {
		if shape.RelKeys > 0 {
			s += q[i] * args[shape.RelKeys].At(head*shape.HeadDim+i, at)
		}
		if shape.RelQueries > 0 {
			s += k[i] * args[shape.RelQueries].At(at, head*shape.HeadDim+i)
		}
	}
	return s
}

func relBucket(o *ir.Op, distance int) int {
	return ops.RelBucket(distance, o.Int("rel_buckets"), o.Int("rel_max"), o.Bool("rel_bidirectional"))
}

func fieldIndex(s *ir.StateType, name string) int {
	for i, f := range s.Fields {
		if f.Name == name {
			return i
		}
	}
	panic("bug: state without field " + name)
}
