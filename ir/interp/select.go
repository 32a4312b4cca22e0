package interp

import (
	"cmp"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// selectRows implements the op select_rows (ops.SelectRows).
func (r *run) selectRows(o *ir.Op, name string, args []*tensor.Tensor) *tensor.Tensor {
	heads, top, every := o.Int("heads"), o.Int("top"), o.Int("every")
	q, w := args[0], args[1]
	dim, field := q.Shape[1]/heads, fieldIndex(o.Args[2].State, "k")
	out := tensor.New(tensor.F32, q.Shape[0], top)
	for i := range out.F {
		out.F[i] = math.Inf(1)
	}
	for t := range q.Shape[0] {
		rows := slices.DeleteFunc(r.states.visible(name, r.step, t, view{causal: true}), func(row *stateRow) bool { return (row.pos+1)%every != 0 })
		slices.SortFunc(rows, func(a, b *stateRow) int { return a.pos - b.pos })
		var scores []float64
		for _, row := range rows {
			score := 0.0
			for h := range heads {
				dot := 0.0
				for i, k := range row.fields[field] {
					dot += q.F[(t*heads+h)*dim+i] * k
				}
				score += w.At(t, h) * math.Max(0, dot)
			}
			scores = append(scores, score)
		}
		for i, n := range chosen(scores, top) {
			out.F[t*top+i] = float64(rows[n].pos)
		}
	}
	return out
}

// chosen returns the indices of the top greatest scores, ascending; ties go to
// the lower index.
func chosen(scores []float64, top int) []int {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	order = order[:min(top, len(order))]
	slices.Sort(order)
	return order
}

// among returns the rows at the positions in row t of selected.
func among(rows []*stateRow, selected *tensor.Tensor, t int) []*stateRow {
	top := selected.Shape[1]
	return slices.DeleteFunc(rows, func(r *stateRow) bool {
		_, ok := slices.BinarySearch(selected.F[t*top:(t+1)*top], float64(r.pos))
		return !ok
	})
}
