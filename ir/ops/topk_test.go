package ops

import (
	"slices"
	"testing"
)

// TestTorchTopK compares with the indices of torch.topk (torch 2.9.1, on a CPU) for
// numbers with many ties.
func TestTorchTopK(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		x    []float64
		want []int
	}{
		{[]float64{-1, 1, 2, 0, -2, 0}, []int{1, 2, 5}},
		{[]float64{0, 0, 0.73, -0.35, -2.46, 0}, []int{1, 2, 5}},
		{[]float64{0, -1, 0, -1, 0, -2}, []int{0, 2, 4}},
		{[]float64{0, -0.26, 0.27, 0, 0, 0}, []int{2, 3, 4}},
		{[]float64{0, -1, -1, 2, 0, -1, 0, 1}, []int{3, 6, 7}},
		{[]float64{0, 0, 0.54, 2.23, -1.44, 0, 1.1, 0}, []int{2, 3, 6}},
		{[]float64{1, -1, 2, 2, -2, 1, 0, -2}, []int{0, 2, 3}},
		{[]float64{0, 0, 0, 0.03, 0.25, 0.88, 0.56, -0.7}, []int{4, 5, 6}},
		{[]float64{-1, 1, 1, 2, 2, -2, -2, -2}, []int{3, 4}},
	} {
		if got := slices.Sorted(slices.Values(TorchTopK(c.x, len(c.want)))); !slices.Equal(got, c.want) {
			t.Errorf("%d of %v: have %v, want %v", len(c.want), c.x, got, c.want)
		}
	}
}
