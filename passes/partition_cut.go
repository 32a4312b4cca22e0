package passes

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// A cut lists the range of columns (or rows, or experts) of each rank. Ranges
// may overlap if ranks share columns, and may differ in length.
type cut []ir.Range

// width returns the length of the longest range.
func (c cut) width() int {
	w := 0
	for _, r := range c {
		w = max(w, r.Len())
	}
	return w
}

// times returns the cut for items of n columns each.
func (c cut) times(n int) cut {
	out := make(cut, len(c))
	for i, r := range c {
		out[i] = ir.Range{Lo: r.Lo * n, Hi: r.Hi * n}
	}
	return out
}

// over returns the division of items, n of which form one.
func (c cut) over(n int) cut {
	out := make(cut, len(c))
	for i, r := range c {
		out[i] = ir.Range{Lo: r.Lo / n, Hi: r.Hi / n}
	}
	return out
}

// cols returns the number of columns of a value over all ranks.
func cols(v *ir.Value, c cut) int {
	n := v.Type.Cols()
	if c != nil {
		n = 0
		for _, r := range c {
			n = max(n, r.Hi)
		}
	}
	return n
}

// equal reports whether the ranges are equal consecutive parts of size.
func (c cut) equal(size int) bool {
	for i, r := range c {
		if r.Lo*len(c) != i*size || r.Hi*len(c) != (i+1)*size {
			return false
		}
	}
	return true
}

// whole reports whether every rank has all of size.
func (c cut) whole(size int) bool {
	for _, r := range c {
		if r.Lo != 0 || r.Hi != size {
			return false
		}
	}
	return true
}

// nums returns the numbers for a transform of parts.
func (c cut) nums(size int) []float64 {
	if c.equal(size) {
		return []float64{float64(len(c))}
	}
	var out []float64
	for _, r := range c {
		out = append(out, float64(r.Lo), float64(r.Hi))
	}
	return out
}

// bounds returns the numbers for the attribute bounds.
func (c cut) bounds() []int {
	var out []int
	for _, r := range c {
		out = append(out, r.Lo, r.Hi)
	}
	return out
}

func (c cut) same(d cut) bool {
	for i := range c {
		if c[i] != d[i] {
			return false
		}
	}
	return len(c) == len(d)
}

// evenly cuts size into n ranges whose lengths differ by at most one.
func evenly(size, n int) cut {
	var c cut
	for i := range n {
		c = append(c, ir.Range{Lo: size * i / n, Hi: size * (i + 1) / n})
	}
	return c
}

// byShares cuts size into ranges of whole units in proportion to the shares, at
// least one unit each.
func byShares(size, unit int, shares []float64) cut {
	n, units := len(shares), size/unit
	total := 0.0
	for _, s := range shares {
		total += s
	}
	var c cut
	at, sum := 0, 0.0
	for i, s := range shares {
		sum += s
		to := int(float64(units)*sum/total + 0.5)
		to = max(at+1, min(to, units-(n-1-i)))
		if i == n-1 {
			to = units
		}
		c = append(c, ir.Range{Lo: at * unit, Hi: to * unit})
		at = to
	}
	return c
}

// A geometry lists the query heads and the KV heads of each rank.
type geometry struct {
	heads, kvHeads int
	q, kv          cut
}

// narrow sets the number of heads in a field of a KV cache.
func (g *geometry) narrow(f *ir.Field) { f.Shape[0] = g.kv.width() }

// headsOver distributes heads over n ranks. If there are enough KV heads, a
// rank gets whole groups of query heads with their KV head. Otherwise several
// ranks share a KV head and divide its query heads.
func headsOver(n, heads, kvHeads int) (*geometry, error) {
	if heads < n {
		return nil, fmt.Errorf("%d heads cannot be divided among %d devices; name at most %d in a group", heads, n, heads)
	}
	g := &geometry{heads: heads, kvHeads: kvHeads}
	each := heads / kvHeads
	if n <= kvHeads {
		g.kv = evenly(kvHeads, n)
		g.q = g.kv.times(each)
		return g, nil
	}
	for i, r := range evenly(n, kvHeads) { // the ranks that share KV head i
		for _, q := range evenly(each, r.Len()) {
			g.kv = append(g.kv, ir.Range{Lo: i, Hi: i + 1})
			g.q = append(g.q, ir.Range{Lo: i*each + q.Lo, Hi: i*each + q.Hi})
		}
	}
	return g, nil
}

// geometries returns the distribution of each state's heads. A state is absent
// if the output of its attention or recurrence is needed whole; every rank then has
// all of its heads.
func geometries(m *ir.Module, n int) (map[*ir.Value]*geometry, error) {
	out := map[*ir.Value]*geometry{}
	whole := map[*ir.Value]bool{}
	for _, g := range m.Graphs {
		if g.Name == ir.DraftGraph { // runs on one rank
			continue
		}
		uses := ir.Uses(g)
		for _, op := range g.FindOps("attention") {
			st := op.Args[1].Value
			geo, err := headsOver(n, op.Int("heads"), op.Int("kv_heads"))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", where(op), err)
			}
			if old := out[st]; old != nil && old.heads != geo.heads || !(&readers{uses: uses}).dividesAt(op.Result(), geo.q.times(ops.AttentionShapeOf(op).VDim)) {
				whole[st] = true
			}
			out[st] = geo
		}
		for _, op := range g.FindOps("linear_recurrence") {
			st, shape := op.Args[0].Value, ops.RecurrenceShapeOf(op)
			geo, err := headsOver(n, shape.Heads, shape.KeyHeads)
			if err != nil || !(&readers{uses: uses}).dividesAt(op.Result(), geo.q.times(shape.ValueDim)) {
				whole[st] = true
			}
			out[st] = geo
		}
	}
	for _, g := range m.Graphs {
		for _, op := range g.Body.Ops { // which every rank runs unchanged
			for _, a := range op.Args {
				whole[a.Value] = true
			}
		}
	}
	for st := range whole {
		delete(out, st)
	}
	return out, nil
}
