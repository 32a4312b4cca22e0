package tune

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		xs   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 2}, 2}} {
		if got := median(c.xs); got != c.want {
			t.Errorf("median of %v: %v, want %v", c.xs, got, c.want)
		}
	}
}

// TestIntervalIsTheBootstrap compares the closed form with resampling.
func TestIntervalIsTheBootstrap(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 3, 5, 9, 21, 41} {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = rng.ExpFloat64()
		}
		low, high := interval(xs)
		medians := make([]float64, 20000)
		for i := range medians {
			again := make([]float64, n)
			for j := range again {
				again[j] = xs[rng.IntN(n)]
			}
			medians[i] = median(again)
		}
		slices.Sort(medians)
		sorted := slices.Sorted(slices.Values(xs))
		near := func(a, b float64) bool { // the same or the neighboring order statistic, since resampled percentiles are random
			i, _ := slices.BinarySearch(sorted, a)
			j, _ := slices.BinarySearch(sorted, b)
			return i-j <= 1 && j-i <= 1
		}
		if l, h := medians[500], medians[19500]; !near(low, l) || !near(high, h) {
			t.Errorf("%d samples: [%g, %g], resampling gives [%g, %g]", n, low, high, l, h)
		}
	}
}

// TestIntervalOfEvenCounts checks that the interval contains the median and widens
// towards the extremes with fewer samples.
func TestIntervalOfEvenCounts(t *testing.T) {
	t.Parallel()
	for n := 2; n <= 40; n += 2 {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = float64(i)
		}
		low, high := interval(xs)
		if m := median(xs); low > m || high < m || low < 0 || high > float64(n-1) {
			t.Errorf("%d samples: [%g, %g] around %g", n, low, high, m)
		}
		if n <= 4 && (low != 0 || high != float64(n-1)) {
			t.Errorf("%d samples: [%g, %g], want all of them", n, low, high)
		}
	}
}

func TestTailIsBinomial(t *testing.T) {
	t.Parallel()
	if got := tail(3, 2, 0.5); math.Abs(got-0.5) > 1e-12 {
		t.Errorf("P(X ≥ 2), X binomial(3, ½): %g", got)
	}
	if got := tail(10, 10, 0.9); math.Abs(got-math.Pow(0.9, 10)) > 1e-12 {
		t.Errorf("P(X = 10), X binomial(10, 0.9): %g", got)
	}
	if tail(5, 3, 1) != 1 || math.Abs(tail(5, 0, 0.3)-1) > 1e-12 {
		t.Error("certain events")
	}
}
