package tune

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// simulated is a Timer that returns the times of model and counts the calls.
type simulated struct {
	calls int
	asked map[int][]int // candidates by row count in the first round
	stop  func()
}

func (s *simulated) Time(_ Shape, rows, blocks int, which []int) ([][]float64, bool, error) {
	if s.calls++; s.stop != nil && s.calls == 5 {
		s.stop()
	}
	if s.asked[rows] == nil {
		s.asked[rows] = which
	}
	out := make([][]float64, 3)
	for _, i := range which {
		out[i] = slices.Repeat([]float64{model(i, rows)}, blocks)
	}
	return out, true, nil
}

var simulatedShape = Shape{N: 64, K: 64, DType: "f16", Candidates: []Candidate{{Impl: "gemv"}, {Impl: "flat_gemm"}, {Impl: "gemm"}}}

// TestMeasure checks that every cell gets samples, that an outclassed candidate is
// dropped, and that one that becomes fast only at more rows is not.
func TestMeasure(t *testing.T) {
	t.Parallel()
	s := &simulated{asked: map[int][]int{}}
	cells, err := Measure(context.Background(), s, []Shape{simulatedShape}, Options{Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if len(cells) != 1 || len(cells[0]) != len(DefaultRows()) {
		t.Fatalf("%d shapes", len(cells))
	}
	for _, c := range cells[0] {
		if n := len(c.Blocks[1]); n < leastBlocks {
			t.Errorf("%d rows: %d samples", c.Rows, n)
		}
	}
	if !slices.Equal(s.asked[4], []int{0, 1, 2}) || !slices.Equal(s.asked[32], []int{1, 2}) {
		t.Errorf("asked %v at 4 rows and %v at 32", s.asked[4], s.asked[32])
	}
	if rules := Rules(three, cells[0]); len(rules) != 3 {
		t.Errorf("rules %v", rules)
	}
}

// TestBudget checks that without a budget only the first round runs.
func TestBudget(t *testing.T) {
	t.Parallel()
	s := &simulated{asked: map[int][]int{}}
	if _, err := Measure(context.Background(), s, []Shape{simulatedShape}, Options{Rows: []int{1, 2, 3}}); err != nil || s.calls != 3 {
		t.Errorf("%d calls, %v", s.calls, err)
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(context.Background())
	s := &simulated{asked: map[int][]int{}, stop: stop}
	if _, err := Measure(ctx, s, []Shape{simulatedShape}, Options{Budget: time.Minute}); !errors.Is(err, context.Canceled) || s.calls != 5 {
		t.Errorf("%d calls, %v", s.calls, err)
	}
}

func TestInterleaving(t *testing.T) {
	t.Parallel()
	order := Interleave([]int{0, 2}, 2)
	if want := []int32{0, 0, 2, 2, 0, 0, 2, 2, 0}; !slices.Equal(order, want) {
		t.Fatalf("order %v", order)
	}
	seconds := []float64{1, 10, 12, 2, 3, 20, 22, 4}
	got, clean := ByCandidate(3, 4, order[1:], seconds, make([]int32, 8))
	if !clean || !slices.Equal(got[0], []float64{1.5, 3.5}) || got[1] != nil || !slices.Equal(got[2], []float64{11, 21}) {
		t.Errorf("times %v", got)
	}
	got, clean = ByCandidate(3, 4, order[1:], seconds, []int32{0, 1, 0, 0, 0, 0, 0, 0})
	if !clean || !slices.Equal(got[0], []float64{3.5}) || !slices.Equal(got[2], []float64{21}) {
		t.Errorf("a disturbed block counts: %v", got)
	}
	if got, clean = ByCandidate(3, 4, order[1:], seconds, []int32{0, 1, 0, 0, 0, 0, 0, 1}); clean || len(got[0]) != 2 {
		t.Errorf("all blocks disturbed: %v", got)
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	seconds, disturbed := []float64{5, 9, 9}, []int32{0, 1, 1}
	repair(seconds, disturbed, []float64{4, 4, 0, 4.5, 6, 0})
	if !slices.Equal(seconds, []float64{5, 6, 9}) || !slices.Equal(disturbed, []int32{0, 0, 1}) {
		t.Errorf("%v %v", seconds, disturbed)
	}
}
