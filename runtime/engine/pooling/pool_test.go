package pooling

import (
	"math"
	"testing"
)

// TestPool compares the vectors of three rows with values computed by hand.
func TestPool(t *testing.T) {
	t.Parallel()
	rows := [][]float32{{1, -4}, {2, 8}, {6, 2}}
	for pooling, want := range map[string][]float32{
		"mean": {3, 2}, "cls": {1, -4}, "last": {6, 2}, "max": {6, 8}, "pooler": {1, -4},
		"weighted": {23.0 / 6, 3}, "sqrt": {float32(9 / math.Sqrt(3)), float32(6 / math.Sqrt(3))},
	} {
		var p Pool
		for _, r := range rows {
			p.Add(r, pooling)
		}
		for i, v := range p.Vector(pooling, false) {
			if math.Abs(float64(v-want[i])) > 1e-6 {
				t.Errorf("%s: %v, want %v", pooling, p.Vector(pooling, false), want)
				break
			}
		}
	}
	var p Pool
	p.Add([]float32{3, 4}, "mean")
	if v := p.Vector("mean", true); math.Abs(float64(v[0])-0.6) > 1e-6 || math.Abs(float64(v[1])-0.8) > 1e-6 {
		t.Errorf("normalized: %v, want [0.6 0.8]", v)
	}
}
