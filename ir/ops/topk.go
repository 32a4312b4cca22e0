package ops

import "math"

// torchTopK returns the places of the k greatest entries; of equal ones those
// that torch.topk takes on a CPU, which selects by quickselect with a median of
// three as the pivot (libstdc++'s std::nth_element). Experts of excluded groups
// all count as 0, and where an expert in use counts as less, it matters which of
// them is taken instead. NaN counts as less than any number.
func torchTopK(x []float64, k int) []int {
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

// A selection is the order of x so far.
type selection struct {
	at []int
	x  []float64
}

func (s *selection) before(i, j int) bool { return s.x[s.at[i]] > s.x[s.at[j]] }
func (s *selection) swap(i, j int)        { s.at[i], s.at[j] = s.at[j], s.at[i] }

// partition puts the median of three in front, and then what is before it, and
// gives where the rest begins.
func (s *selection) partition(lo, hi int) int {
	a, b, c := lo+1, lo+(hi-lo)/2, hi-1
	if !s.before(a, b) {
		a, b = b, a
	}
	switch { // a stands before b, or beside it
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
