package decode

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestArgmax compares with a plain loop: ties, infinities and NaN at every position of
// a group, and lengths around multiples of 8.
func TestArgmax(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 5))
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, n := range []int{1, 2, 7, 8, 9, 15, 16, 17, 255, 1000} {
		for range 400 {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(r.IntN(40) - 38) // few values: ties
			}
			for range r.IntN(4) {
				x[r.IntN(n)] = []float32{inf, -inf, nan, math.MaxFloat32, -math.MaxFloat32}[r.IntN(5)]
			}
			got, ok := argmax(x)
			want, valid := argmaxSlow(x)
			if ok != valid || ok && got != want {
				t.Fatalf("%d logits: %d %v, want %d %v", n, got, ok, want, valid)
			}
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = -inf
		}
		if _, ok := argmax(x); ok {
			t.Errorf("%d logits of minus infinity: one was taken", n)
		}
	}
}

// argmaxSlow is a plain argmax.
func argmaxSlow(logits []float32) (int, bool) {
	best, nan := 0, false
	for i, l := range logits {
		nan = nan || l != l
		if l > logits[best] {
			best = i
		}
	}
	return best, !nan && logits[best] >= -math.MaxFloat32
}

func BenchmarkArgmax(b *testing.B) {
	x := make([]float32, 50000)
	r := rand.New(rand.NewPCG(3, 5))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for b.Loop() {
		argmax(x)
	}
}
