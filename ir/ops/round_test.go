package ops

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
)

// TestRoundRotated checks that the rotation spreads an outlier: with it, the other numbers
// of a block keep their values, which 5-bit codes alone would round to 0.
func TestRoundRotated(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	x := make([]float64, 64)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	x[7] = 40
	y := append([]float64(nil), x...)
	if err := RoundState(tensor.Q5RB32T2, y); err != nil {
		t.Fatal(err)
	}
	var square float64
	for i := range x {
		square += (x[i] - y[i]) * (x[i] - y[i])
	}
	if rms := math.Sqrt(square / 64); !(rms > 0 && rms < 0.25) { // 1 if the others become 0
		t.Errorf("the root mean square error is %g", rms)
	}
	if err := RoundState(tensor.Q5RB32T2, y[:40]); err == nil {
		t.Error("40 numbers are not whole blocks")
	}
}
