package policy

import (
	"math"
	"testing"
	"time"
)

// TestTimes checks that estimates follow steps that were measured often, and that
// neither a cold prefill step nor a slow first step distorts them.
func TestTimes(t *testing.T) {
	var e table
	if e.step(1) != 0 {
		t.Error("an estimate from nothing")
	}
	ms := func(n int, v float64, count int) {
		for range count {
			e.measure(n, time.Duration(v*float64(time.Millisecond)))
		}
	}
	near := func(n int, want float64) {
		t.Helper()
		if got := e.step(n) * 1000; math.Abs(got-want) > 1e-6*want {
			t.Errorf("a step of %d tokens: %g ms, want %g", n, got, want)
		}
	}
	ms(16, 31, 1) // the prompt
	ms(1, 3, 10)
	near(1, 3)
	near(2, 3*1.12)
	ms(4, 30, 1) // a single outlier
	near(4, 3*1.36)
	ms(4, 3.6, 5)
	near(4, 3.6)
	near(2, 3.2)
	near(5, 3.8)
	ms(8, 3.5, 3) // larger and no slower
	near(4, 3.5)
	near(6, 3.5)
	var slow table
	e = slow
	ms(1, 10, 1)
	ms(4, 3.5, 20)
	near(1, 3.5)
	near(4, 3.5)
}
