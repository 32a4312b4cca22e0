package ops

import "math"

// TorchTopK returns the indices of the k greatest elements, in any order. Ties are resolved
// like torch.topk on a CPU if k is above a 64th of the elements: by quickselect with a
// median-of-three pivot (libstdc++'s std::nth_element). NaN counts as less than any number.
func TorchTopK(x []float64, k int) []int {
	s := selection{at: make([]int, len(x)), x: make([]float64, len(x))}
	for i, v := range x {
		if s.at[i], s.x[i] = i, v; math.IsNaN(v) {
			s.x[i] = math.Inf(-1)
		}
	}
	lo, hi := 0, len(x)
	for hi-lo > 3 {
		if cut := s.partition(lo, hi); cut <= k-1 {
			lo = cut
		} else {
			hi = cut
		}
	}
	for i := lo + 1; i < hi; i++ {
		for j := i; j > lo && s.before(j, j-1); j-- {
			s.swap(j, j-1)
		}
	}
	return s.at[:k]
}

// A selection is a partial order of x.
type selection struct {
	at []int
	x  []float64
}

func (s *selection) before(i, j int) bool { return s.x[s.at[i]] > s.x[s.at[j]] }
func (s *selection) swap(i, j int)        { s.at[i], s.at[j] = s.at[j], s.at[i] }

// partition moves the median of three to the front, then the elements before it, and
// returns the start of the rest.
func (s *selection) partition(lo, hi int) int {
	a, b, c := lo+1, lo+(hi-lo)/2, hi-1
	if !s.before(a, b) {
		a, b = b, a
	}
	switch { // here a does not follow b
	case s.before(b, c):
		s.swap(lo, b)
	case s.before(a, c):
		s.swap(lo, c)
	default:
		s.swap(lo, a)
	}
	first, last := lo+1, hi
	for {
		for s.before(first, lo) {
			first++
		}
		for last--; s.before(lo, last); {
			last--
		}
		if first >= last {
			return first
		}
		s.swap(first, last)
		first++
	}
}
