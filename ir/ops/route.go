package ops

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// normFloor is added to the sum that the weights are divided by (DeepSeek-V3).
const normFloor = 1e-20

// Route chooses experts for each row.
var Route = &ir.OpDef{
	Name: "route",
	Doc: "y[t, e] is the weight of expert e for row t, and 0 for all but the top_k experts of the row. " +
		"score softmax: softmax over all experts. sigmoid: σ of each logit. sqrtsoftplus: √log(1 + exp(logit)). softmax_topk: softmax over the chosen logits only. " +
		"sparsemixer: two experts, each weighted by its softmax over the logits near it among those not yet chosen (Phi-3.5-MoE). " +
		"The experts with the greatest score + bias are chosen; their weight is the score without the bias. For ties the lower expert is chosen. " +
		"With groups, the experts are divided into that many groups of equal size. The score of a group is its greatest score + bias (max, DeepSeek-V2) or the sum of its two greatest (top2, DeepSeek-V3). " +
		"No expert outside the top_groups best groups is chosen. " +
		"by_id: the experts are those in row id of a table instead; numbers outside 0 … E − 1 become the nearest of these. " +
		"norm: the chosen weights are divided by their sum + 1e-20. Finally, all weights are multiplied by scale.",
	Params: []ir.ParamDef{
		param("logits", "f32[T, E]", value),
		optional(param("bias", "weight [E], added to scores only to choose experts; default: 0. by_id: i32[T], the ids", either)),
		optional(param("table", "by_id: [ids, top_k], experts", weight)),
	},
	Attrs: []ir.AttrDef{
		{Name: "top_k", Kind: ir.IntAttr, Required: true, Doc: "experts per row"},
		{Name: "score", Kind: ir.WordAttr, Words: []string{"softmax", "sigmoid", "sqrtsoftplus", "softmax_topk", "sparsemixer"}, Default: "softmax", Doc: "how scores are computed from logits"},
		{Name: "jitter", Kind: ir.FloatAttr, Default: 0.01, Doc: "with sparsemixer: half the relative distance of near logits"},
		{Name: "norm", Kind: ir.BoolAttr, Doc: "the weights of a row sum to 1 before scale"},
		{Name: "scale", Kind: ir.FloatAttr, Default: 1.0, Doc: "factor on the weights"},
		{Name: "groups", Kind: ir.IntAttr, Default: 0, Doc: "number of expert groups; 0: no groups"},
		{Name: "top_groups", Kind: ir.IntAttr, Default: 0, Doc: "groups per row"},
		{Name: "by_id", Kind: ir.BoolAttr, Doc: "experts are chosen by a table"},
		{Name: "group_score", Kind: ir.WordAttr, Words: []string{"max", "top2"}, Default: "max", Doc: "score of a group"},
	},
	Traits: ir.RowWise,
	Infer:  inferRoute,
	Eval: func(o *ir.Op, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		out := in[0].Clone()
		for t := range out.Shape[0] {
			var bias []float64
			var chosen []int
			switch {
			case o.Bool("by_id"):
				for _, e := range row(in[2], int(in[1].F[t])) {
					chosen = append(chosen, int(min(max(e, 0), float64(out.Shape[1]-1))))
				}
			case len(in) > 1:
				bias = in[1].F
			}
			routeRow(o, row(out, t), bias, chosen)
		}
		return []*tensor.Tensor{out}, nil
	},
}

func inferRoute(o *ir.Op) ([]ir.Type, error) {
	x, err := matrix(o.Args[0])
	if err != nil {
		return nil, err
	}
	experts, k, groups, top := x.Cols(), o.Int("top_k"), o.Int("groups"), o.Int("top_groups")
	if err := routeArgs(o, experts); err != nil {
		return nil, err
	}
	if k < 1 || k > experts {
		return nil, fmt.Errorf("top_k=%d of %d experts, expected 1 to %d", k, experts, experts)
	}
	if o.Word("score") == "sparsemixer" && (k != 2 || groups != 0 || len(o.Args) > 1) {
		return nil, fmt.Errorf("score=sparsemixer with top_k=%d, groups=%d and %d arguments, expected top_k=2, no groups and no bias", k, groups, len(o.Args))
	}
	if groups == 0 && top == 0 {
		return one(x, nil)
	}
	switch {
	case groups < 1 || experts%groups != 0:
		return nil, fmt.Errorf("%d experts are not divisible by groups=%d", experts, groups)
	case top < 1 || top > groups:
		return nil, fmt.Errorf("top_groups=%d of groups=%d, expected 1 to %d", top, groups, groups)
	case k > experts/groups*top:
		return nil, fmt.Errorf("top_k=%d but top_groups=%d contain only %d experts", k, top, experts/groups*top)
	case o.Word("group_score") == "top2" && experts/groups < 2:
		return nil, fmt.Errorf("group_score=top2 with groups of one expert")
	}
	return one(x, nil)
}

// routeArgs checks the bias, or the ids and the table.
func routeArgs(o *ir.Op, experts int) error {
	switch {
	case !o.Bool("by_id") && len(o.Args) == 1:
		return nil
	case !o.Bool("by_id"):
		if len(o.Args) > 2 || o.Args[1].Kind != ir.Weight {
			return fmt.Errorf("%s is no bias, or there are further arguments", o.Args[1])
		}
		return vector(o.Args[1], experts)
	case len(o.Args) != 3 || o.Int("groups") != 0 || o.Word("score") == "sparsemixer":
		return fmt.Errorf("by_id requires ids and a table, and excludes groups and sparsemixer")
	}
	if _, err := indices(o.Args[1]); err != nil {
		return err
	}
	if t := o.Args[2].Type; !t.IsMatrix() || t.Cols() != o.Int("top_k") {
		return fmt.Errorf("%s is %s, expected [ids, %d]", o.Args[2], t, o.Int("top_k"))
	}
	return nil
}

// routeRow replaces the logits of one row by weights; chosen is nil if the experts depend
// on the logits.
func routeRow(o *ir.Op, x, bias []float64, chosen []int) {
	switch o.Word("score") {
	case "softmax":
		SoftmaxRow(x)
	case "sigmoid":
		for i, v := range x {
			x[i] = sigmoid(v)
		}
	case "sqrtsoftplus":
		for i, v := range x {
			x[i] = math.Sqrt(math.Max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))))
		}
	case "sparsemixer":
		sparseMixerRow(x, o.Float("jitter"))
		scaleBy(x, o.Float("scale"))
		return
	}
	choice := slices.Clone(x)
	for i := range bias {
		choice[i] += bias[i]
	}
	if o.Int("groups") > 0 {
		limitGroups(o, choice)
	}
	if chosen == nil {
		chosen = greatest(choice, o.Int("top_k"))
	}
	var weights []float64
	for _, e := range chosen {
		weights = append(weights, x[e])
	}
	if o.Word("score") == "softmax_topk" {
		SoftmaxRow(weights)
	}
	if o.Bool("norm") {
		sum := normFloor
		for _, w := range weights {
			sum += w
		}
		scaleBy(weights, 1/sum)
	}
	clear(x)
	for i, e := range chosen {
		x[e] += weights[i] * o.Float("scale")
	}
}

// limitGroups sets the scores outside the best groups to −∞.
func limitGroups(o *ir.Op, choice []float64) {
	size := len(choice) / o.Int("groups")
	var worth []float64
	for g := range o.Int("groups") {
		group := slices.Sorted(slices.Values(choice[g*size : (g+1)*size]))
		w := group[size-1]
		if o.Word("group_score") == "top2" {
			w += group[size-2]
		}
		worth = append(worth, w)
	}
	best := greatest(worth, o.Int("top_groups"))
	for e := range choice {
		if !slices.Contains(best, e/size) {
			choice[e] = math.Inf(-1)
		}
	}
}

// greatest returns the indices of the n greatest elements. Ties are in index order; NaN
// counts as less than any number.
func greatest(x []float64, n int) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	key := func(i int) float64 {
		if math.IsNaN(x[i]) {
			return math.Inf(-1)
		}
		return x[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(key(b), key(a)) })
	return order[:n]
}
