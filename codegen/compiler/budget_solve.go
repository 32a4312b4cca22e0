package compiler

import (
	"cmp"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
)

// An option is a type that a unit can have.
type option struct {
	typ   tensor.DType
	bytes int64
	loss  float64 // KL divergence, in nats, as if the other matrices had no error
}

// hull returns the options on the lower convex hull of loss over bytes, from the smallest.
// The others are never the best choice for any price of a byte.
func hull(options []option) (out []option) {
	slices.SortStableFunc(options, func(a, b option) int {
		return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.loss, b.loss))
	})
	for _, o := range options {
		if n := len(out); n > 0 && o.loss >= out[n-1].loss {
			continue
		}
		for n := len(out); n > 1 && slope(out[n-1], o) >= slope(out[n-2], out[n-1]); n-- {
			out = out[:n-1]
		}
		out = append(out, o)
	}
	return out
}

// slope is the gain per byte of an option over a smaller one.
func slope(small, large option) float64 {
	return (small.loss - large.loss) / float64(large.bytes-small.bytes)
}

// A selection is an option of each unit.
type selection struct {
	of    []int // indices of options
	bytes int64
	loss  float64 // sum of the units' losses
}

// selections returns the best selections from the smallest to the largest. Each gives one
// unit the next option of its hull, the one with the largest gain per byte. Each is the
// best of its size (Everett 1963: it minimizes the loss plus a price of bytes).
func selections(units [][]option) (list []selection) {
	s := selection{of: make([]int, len(units))}
	for _, options := range units {
		s.bytes, s.loss = s.bytes+options[0].bytes, s.loss+options[0].loss
	}
	for {
		s.of = slices.Clone(s.of)
		list = append(list, s)
		best, gain := -1, -1.0
		for i, options := range units {
			if at := s.of[i]; at+1 < len(options) {
				if g := slope(options[at], options[at+1]); g > gain {
					best, gain = i, g
				}
			}
		}
		if best < 0 {
			return list
		}
		s = s.with(units, best, s.of[best]+1)
	}
}

// with returns s with another option of a unit.
func (s selection) with(units [][]option, unit, to int) selection {
	old, next := units[unit][s.of[unit]], units[unit][to]
	s.of = slices.Clone(s.of)
	s.of[unit] = to
	s.bytes += next.bytes - old.bytes
	s.loss += next.loss - old.loss
	return s
}

// largest returns the best selection of at most a number of bytes; false if there is none.
// It fills the rest after the last of the list with any gain that fits.
func largest(units [][]option, list []selection, bytes int64) (selection, bool) {
	at := -1
	for i, s := range list {
		if s.bytes <= bytes {
			at = i
		}
	}
	if at < 0 {
		return list[0], false
	}
	s := list[at]
	for {
		best, to, gain := -1, 0, 0.0
		for i, options := range units {
			for k := s.of[i] + 1; k < len(options); k++ {
				if g := slope(options[s.of[i]], options[k]); s.with(units, i, k).bytes <= bytes && g > gain {
					best, to, gain = i, k, g
				}
			}
		}
		if best < 0 {
			return s, true
		}
		s = s.with(units, best, to)
	}
}

// A response converts the sum of the units' losses to the loss of the whole model. Errors of
// several matrices add up as long as they are small; the response was measured with errors
// in all matrices. It is a line between the logarithms of the points.
type response struct{ sum, loss []float64 } // ascending; empty: the loss is the sum

func (r response) of(sum float64) float64 {
	n := len(r.sum)
	if n == 0 || sum <= 0 {
		return max(sum, 0)
	}
	if sum <= r.sum[0] { // errors so small add up
		return sum * r.loss[0] / r.sum[0]
	}
	if n == 1 {
		return sum * r.loss[0] / r.sum[0]
	}
	k, _ := slices.BinarySearch(r.sum, sum)
	k = min(k, n-1)
	x0, x1, y0, y1 := math.Log(r.sum[k-1]), math.Log(r.sum[k]), math.Log(r.loss[k-1]), math.Log(r.loss[k])
	return math.Exp(y0 + (y1-y0)*(math.Log(sum)-x0)/(x1-x0))
}
