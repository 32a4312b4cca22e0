package layout

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Attention is attention over a paged KV cache.
type Attention struct {
	Q, Out         Place
	State          *State
	StateArg       ir.Arg
	Heads, KVHeads int
	Scale          float64
	Softcap        float64 // 0: none
	Windows        []int   // window of each layer, or one for all; 0: none; negative: a chunk
	Causal         bool
	Global         int       // with windows: the first positions, which are visible to all
	Cross          bool      // cross-attention: over the KV cache of the sequence's source
	Alibi          []float64 // slopes of the heads, or none
	Sinks          *ir.Arg   // logits of the heads' sinks, or nil
	Relative       *RelativeBias
	RelKeys        *ir.Arg // keys of relative positions [heads·width, buckets], or nil
	RelQueries     *ir.Arg // queries of relative positions [buckets, heads·width], or nil
	Selected       *Place  // positions of the rows that a token sees, or nil
	Every          int     // distance of the visible rows
	LSE            bool    // with the logarithms of the denominators
}

// A RelativeBias is a score bias by bucket of the distance (T5).
type RelativeBias struct {
	Table   *ir.Arg // [buckets, heads]; nil: the bias depends on content
	Max     int     // distances beyond it share a bucket
	Buckets []int   // of distance −Max … Max
}

func (s *scheduler) attention(op *ir.Op) error {
	st := s.l.states[op.Args[1].Value]
	q, err := s.placed(op, op.Args[0].Value)
	if err != nil {
		return err
	}
	shape := ops.AttentionShapeOf(op)
	a := &Attention{
		Q: q, Out: s.l.places[op.Results[0]], State: st, StateArg: op.Args[1], Heads: shape.Heads, KVHeads: shape.KVHeads,
		Scale: shape.Scale, Softcap: op.Float("softcap"), Causal: op.Bool("causal"), Global: op.Int("global"), Cross: op.Bool("cross"),
		Alibi: op.Floats("alibi"), Every: op.Int("every"), LSE: op.Bool("lse"),
	}
	for i := range max(len(op.Ints("window")), len(op.Ints("chunk")), 1) {
		a.Windows = append(a.Windows, ops.Span(op, i))
	}
	if shape.Sinks > 0 {
		a.Sinks = &op.Args[shape.Sinks]
	}
	if shape.Selected > 0 {
		p, err := s.placed(op, op.Args[shape.Selected].Value)
		if err != nil {
			return err
		}
		a.Selected = &p
	}
	if n := op.Int("rel_buckets"); n > 0 {
		r := &RelativeBias{Max: op.Int("rel_max")}
		if op.Word("rel_spacing") == "linear" {
			r.Max = n / 2
		}
		for _, w := range []struct {
			at int
			to **ir.Arg
		}{{shape.Rel, &r.Table}, {shape.RelKeys, &a.RelKeys}, {shape.RelQueries, &a.RelQueries}} {
			if w.at > 0 {
				*w.to = &op.Args[w.at]
			}
		}
		for d := -r.Max; d <= r.Max; d++ { // the bucket of each distance is known now
			r.Buckets = append(r.Buckets, ops.RelIndex(op, d))
		}
		a.Relative = r
	}
	if (a.RelKeys != nil || a.RelQueries != nil) && st.Elem == tensor.Q4B32T2 {
		return fmt.Errorf("%s: attention with keys or queries of relative positions reads no state of %s, whose keys are rotated", Position(op), st.Elem)
	}
	doc := fmt.Sprintf("attention: %d heads on %d of width %d, %s state", a.Heads, a.KVHeads, st.Dim, st.Elem)
	s.add(&Region{Name: "attention", Doc: doc, Role: op.Results[0].Role(), Work: a})
	return nil
}
