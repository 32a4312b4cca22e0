package tensor

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTakeOutlierColumns checks that outliers and remainder sum to the row, that the
// largest groups are selected, and that the remaining block has a smaller error.
func TestTakeOutlierColumns(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, 256)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	x[70], x[201] = 40, -90
	rest := append([]float32(nil), x...)
	taken := TakeOutlierColumns(rest, 2)
	if taken[0].Group != 201/4 || taken[1].Group != 70/4 {
		t.Fatalf("took groups %d and %d, expected %d and %d", taken[0].Group, taken[1].Group, 201/4, 70/4)
	}
	again := append([]float32(nil), rest...)
	for _, o := range taken {
		for i, q := range o.Codes {
			again[o.Group*OutlierGroup+i] += o.Scale * float32(q)
		}
	}
	for i := range x {
		if d := math.Abs(float64(again[i] - x[i])); d > 1e-5 {
			t.Errorf("column %d: %g taken apart gives %g", i, x[i], again[i])
		}
	}
	for _, i := range []int{70, 201} {
		if a := math.Abs(float64(rest[i])); a > math.Abs(float64(x[i]))/254+1e-6 {
			t.Errorf("column %d: %g of %g remains, expected half a code at most", i, rest[i], x[i])
		}
	}
}

func TestTakeOutlierColumnsDegenerate(t *testing.T) {
	t.Parallel()
	for _, v := range []float32{0, 1e-44, 1e38} {
		x := []float32{v, 0, 0, 0, -v, 0, 0, 0}
		want := append([]float32(nil), x...)
		for _, o := range TakeOutlierColumns(x, 3) {
			for i, q := range o.Codes {
				x[o.Group*OutlierGroup+i] += o.Scale * float32(q)
			}
		}
		for i := range x {
			if d := math.Abs(float64(x[i] - want[i])); !(d <= 1e-6*math.Abs(float64(want[i]))) {
				t.Errorf("%g: column %d became %g", v, i, x[i])
			}
		}
	}
}
