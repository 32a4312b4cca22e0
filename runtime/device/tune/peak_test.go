//go:build unix

package tune

import "testing"

func TestMarginal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ half, both, want float64 }{
		{6, 10, 4},  // 2 s of overhead
		{5, 10, 5},  // none
		{8, 10, 5},  // the half was disturbed
		{4, 10, 5},  // the whole was disturbed
		{12, 10, 5}, // the half took longer than the whole
	} {
		if got := marginal(c.half, c.both); got != c.want {
			t.Errorf("%g of %g s: %g, expected %g", c.half, c.both, got, c.want)
		}
	}
}
