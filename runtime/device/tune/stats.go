package tune

import (
	"math"
	"slices"
)

// median returns the median of unsorted numbers, or 0 for none.
func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// interval returns the bootstrap 95 % confidence interval of the median, by percentiles.
// The bootstrap distribution of an order statistic has a closed form (Maritz and Jarrett
// 1978): the resampled median is at most the j-th smallest of n numbers if at least half
// of n draws are among the j smallest, which is a binomial tail. If n is even, the lower
// of the two middle values determines the low end and the upper one the high end.
func interval(xs []float64) (low, high float64) {
	n := len(xs)
	if n == 0 {
		return 0, 0
	}
	s := slices.Sorted(slices.Values(xs))
	lower, upper := (n+1)/2, n/2+1
	low, high = s[0], s[n-1]
	for j := 1; j <= n; j++ {
		if tail(n, lower, float64(j)/float64(n)) >= 0.025 {
			low = s[j-1]
			break
		}
	}
	for j := 1; j <= n; j++ {
		if tail(n, upper, float64(j)/float64(n)) >= 0.975 {
			high = s[j-1]
			break
		}
	}
	return low, high
}

// tail returns P(X ≥ k) for X ~ binomial(n, p).
func tail(n, k int, p float64) float64 {
	if p >= 1 {
		return 1
	}
	sum, term := 0.0, math.Pow(1-p, float64(n))
	for i := range n + 1 {
		if i >= k {
			sum += term
		}
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
	}
	return sum
}
