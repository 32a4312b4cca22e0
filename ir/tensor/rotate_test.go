package tensor

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestRotate checks that rotations keep dot products and are their own inverses.
func TestRotate(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 3, 32, 64, 96, 256, 512} {
		x, y := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i], y[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
		}
		old, want := append([]float32(nil), x...), product(x, y)
		Rotate(x)
		Rotate(y)
		if got := product(x, y); math.Abs(got-want) > 1e-5*math.Sqrt(float64(n)) {
			t.Errorf("the dot product of %d numbers is %g after rotation, want %g", n, got, want)
		}
		Rotate(x)
		for i := range x {
			if math.Abs(float64(x[i]-old[i])) > 1e-5 {
				t.Errorf("number %d of %d is %g after two rotations, want %g", i, n, x[i], old[i])
			}
		}
	}
}

func product(x, y []float32) (sum float64) {
	for i := range x {
		sum += float64(x[i]) * float64(y[i])
	}
	return sum
}

// TestCacheTypes checks the codes of the types of the KV cache: the number of the largest
// magnitude gets the lowest code.
func TestCacheTypes(t *testing.T) {
	t.Parallel()
	for dt, low := range map[DType]float32{Q5RB32T2: -16, Q4B32T2: -8} {
		x, got := make([]float32, 32), make([]float32, 32)
		x[0], x[1], x[2], x[31] = -low, low, 1.4, -2.6 // the scale is -1 or 1
		buf := make([]byte, dt.BlockBytes())
		if err := EncodePlain(buf, dt, x); err != nil {
			t.Fatal(err)
		}
		if err := Decode(got, dt, buf); err != nil {
			t.Fatal(err)
		}
		want := [4]float32{-low - 1, low, 1, -3}
		if have := [4]float32{got[0], got[1], got[2], got[31]}; have != want {
			t.Errorf("%s: %v, want %v", dt, have, want)
		}
	}
}
