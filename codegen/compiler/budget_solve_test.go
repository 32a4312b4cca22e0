package compiler

import (
	"math"
	"math/rand/v2"
	"testing"
)

// randomUnits returns units with convex options of random sizes and losses.
func randomUnits(r *rand.Rand, n int) (units [][]option) {
	for range n {
		size, c := int64(1+r.IntN(1000)), math.Exp(4*r.Float64())
		var options []option
		for bits := int64(2); bits <= 8; bits += 1 + int64(r.IntN(2)) {
			options = append(options, option{bytes: size * bits, loss: c * math.Pow(4, -float64(bits)) * (0.5 + r.Float64())})
		}
		units = append(units, hull(options))
	}
	return units
}

// least returns the smallest loss of all combinations of at most some bytes.
func least(units [][]option, bytes int64) float64 {
	if len(units) == 0 {
		return 0
	}
	best := math.Inf(1)
	for _, o := range units[0] {
		if o.bytes <= bytes {
			best = min(best, o.loss+least(units[1:], bytes-o.bytes))
		}
	}
	return best
}

// TestSelections compares with an exhaustive search: each selection of the list is the best
// of its size, and the best for a budget is between two of them.
func TestSelections(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		units := randomUnits(r, 5)
		list := selections(units)
		for i, s := range list {
			if want := least(units, s.bytes); s.loss > want*(1+1e-9) {
				t.Fatalf("selection %d of %d bytes loses %g, the best %g", i, s.bytes, s.loss, want)
			}
		}
		for range 10 {
			budget := list[0].bytes + r.Int64N(list[len(list)-1].bytes)
			s, ok := largest(units, list, budget)
			want := least(units, budget)
			next := 0.0
			for _, l := range list {
				if l.bytes <= budget {
					next = l.loss
				}
			}
			if !ok || s.bytes > budget || s.loss < want*(1-1e-9) || s.loss > next*(1+1e-9) {
				t.Fatalf("for %d bytes: %+v %v, expected a loss from %g to %g", budget, s, ok, want, next)
			}
		}
		if _, ok := largest(units, list, list[0].bytes-1); ok {
			t.Fatal("a budget below the smallest types has a selection")
		}
	}
}

// TestHull: an option that is larger without losing less is dropped, and one above the line
// between its neighbors.
func TestHull(t *testing.T) {
	t.Parallel()
	got := hull([]option{{bytes: 40, loss: 1}, {bytes: 10, loss: 10}, {bytes: 20, loss: 9}, {bytes: 30, loss: 2}, {bytes: 35, loss: 2}, {bytes: 50, loss: 1}})
	want := []int64{10, 30, 40}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, o := range got {
		if o.bytes != want[i] {
			t.Errorf("%+v, expected sizes %v", got, want)
		}
	}
}

func TestResponse(t *testing.T) {
	t.Parallel()
	r := response{sum: []float64{0.01, 0.1, 1}, loss: []float64{0.01, 0.2, 8}}
	for sum, want := range map[float64]float64{0: 0, 0.001: 0.001, 0.01: 0.01, 0.1: 0.2, 1: 8, math.Sqrt(0.1): math.Sqrt(1.6), 10: 320} {
		if got := r.of(sum); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%g: %g, expected %g", sum, got, want)
		}
	}
	if (response{}).of(0.3) != 0.3 {
		t.Error("without points the loss is the sum")
	}
}
