package tune

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
)

var three = []string{"gemv", "flat_gemm", "gemm"}

// timings returns cells in which implementation i takes f(i, rows) seconds, times a factor
// of 1 to 1+3·noise that all samples of an index share, as when a machine changes its
// clock, and a factor of 1±noise/2 of each sample.
func timings(rows []int, samples int, noise float64, f func(i, rows int) float64) []Cell {
	rng := rand.New(rand.NewPCG(3, 4))
	var cells []Cell
	for _, r := range rows {
		c := Cell{Rows: r, Blocks: make([][]float64, 3)}
		for range samples {
			pace := 1 + 3*noise*rng.Float64()
			for i := range c.Blocks {
				if t := f(i, r); t > 0 {
					c.Blocks[i] = append(c.Blocks[i], t*pace*(1+noise*(rng.Float64()-0.5)))
				}
			}
		}
		cells = append(cells, c)
	}
	return cells
}

// model simulates gemv at 1 per row, flat at 1.5 + 0.25 per row and gemm at 8 + 0.2 per
// row. M1 = 3 (2.25 < 3), M2 = 131 (8+26.2 < 1.5+32.75).
func model(i, rows int) float64 {
	r := float64(rows)
	return []float64{r, 1.5 + r/4, 8 + r/5}[i] * 1e-5
}

func TestCrossingsOfCleanTimes(t *testing.T) {
	t.Parallel()
	cells := timings(DefaultRows(), 7, 0, model)
	if m1, m2 := Crossing(cells, 0, 1), Crossing(cells, 1, 2); m1 != 3 || m2 != 192 {
		t.Errorf("M1 %d, M2 %d, want 3 and 192", m1, m2)
	}
	rules := Rules(three, cells)
	want := []dispatch.Rule{{Rows: 1, Impl: "gemv"}, {Rows: 3, Impl: "flat_gemm"}, {Rows: 192, Impl: "gemm"}}
	if !reflect.DeepEqual(rules, want) {
		t.Errorf("rules %v", rules)
	}
	if r := Regret(three, cells, rules); r != 0 {
		t.Errorf("regret %g", r)
	}
}

// TestCrossingsOfNoisyTimes checks that noise shared by paired samples does not move a
// crossing, and that independent noise moves it only a little.
func TestCrossingsOfNoisyTimes(t *testing.T) {
	t.Parallel()
	cells := timings(DefaultRows(), 25, 0.2, model)
	if m1 := Crossing(cells, 0, 1); m1 < 3 || m1 > 4 {
		t.Errorf("M1 %d", m1)
	}
	if m2 := Crossing(cells, 1, 2); m2 < 96 || m2 > 384 {
		t.Errorf("M2 %d", m2)
	}
	if r := Regret(three, cells, Rules(three, cells)); r > 0.08 {
		t.Errorf("regret %g", r)
	}
}

func TestTiesKeepTheIncumbent(t *testing.T) {
	t.Parallel()
	equal := timings(DefaultRows(), 15, 0.05, func(_, rows int) float64 { return float64(rows) })
	if rules := Rules(three, equal); len(rules) > 2 || rules[0].Impl != "gemv" {
		t.Errorf("rules of equal implementations: %v", rules)
	}
	exact := timings([]int{1, 2, 3}, 9, 0, func(_, rows int) float64 { return float64(rows) })
	if rules := Rules(three, exact); len(rules) != 1 || Crossing(exact, 0, 1) != 0 {
		t.Errorf("rules %v of exact ties", rules)
	}
}

// TestOneLuckyRowIsNoCrossing checks that one row count at which the other
// implementation wins, such as the edge of a tile, moves neither the crossing nor the
// rules, and that the regret reports the cost.
func TestOneLuckyRowIsNoCrossing(t *testing.T) {
	t.Parallel()
	cells := timings([]int{1, 2, 3, 4, 5, 6}, 9, 0, func(i, rows int) float64 {
		switch {
		case i == 2:
			return 9
		case i == 1 && rows == 2:
			return 0.8
		case i == 1 && rows >= 5:
			return 0.5
		case i == 1:
			return 2
		}
		return 1
	})
	if m1 := Crossing(cells, 0, 1); m1 != 5 {
		t.Errorf("M1 %d, want 5", m1)
	}
	rules := Rules(three, cells)
	if want := []dispatch.Rule{{Rows: 1, Impl: "gemv"}, {Rows: 5, Impl: "flat_gemm"}}; !reflect.DeepEqual(rules, want) {
		t.Errorf("rules %v", rules)
	}
	if r := Regret(three, cells, rules); r < 0.249 || r > 0.251 {
		t.Errorf("regret %g, want 0.25", r)
	}
}

// TestDroppedImplementations checks that an implementation that is no longer measured
// is not chosen.
func TestDroppedImplementations(t *testing.T) {
	t.Parallel()
	cells := timings([]int{1, 2, 4, 8}, 5, 0, func(i, rows int) float64 {
		if i == 0 && rows > 2 {
			return 0
		}
		return []float64{1, 1, 5}[i]
	})
	rules := Rules(three, cells)
	if want := []dispatch.Rule{{Rows: 1, Impl: "gemv"}, {Rows: 4, Impl: "flat_gemm"}}; !reflect.DeepEqual(rules, want) {
		t.Errorf("rules %v", rules)
	}
	s := Summarize(Shape{N: 16, K: 16, DType: "f16", Candidates: []Candidate{{Impl: "gemv"}, {Impl: "flat_gemm"}, {Impl: "gemm"}}}, cells)
	if s.Measured.M1 != 4 || s.Measured.M2 != 0 || s.Measured.Impls[0].Us[2] != 0 || s.Measured.Impls[0].Samples[3] != 0 {
		t.Errorf("summary %+v", s.Measured)
	}
}

func TestMicro(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]float64{0: 0, 12.3456e-6: 12.35, 1.5e-3: 1500, 0.123456: 123500, 8e-7: 0.8} {
		if got := micro(seconds); got != want {
			t.Errorf("micro(%g) = %v, want %v", seconds, got, want)
		}
	}
}

// TestFamilies checks the crossings of a GPU's matmuls: from one row per block to
// tensor cores, and from these to 16-bit matrices.
func TestFamilies(t *testing.T) {
	t.Parallel()
	shape := Shape{N: 16, K: 32, DType: "f16"}
	for _, name := range []string{"gemv", "flat_gemm", "flat_gemm32", "flat_gemm64", "gemm", "cublaslt"} {
		shape.Candidates = append(shape.Candidates, Candidate{Impl: name})
	}
	var cells []Cell
	for rows := 1; rows <= 8; rows++ {
		c := Cell{Rows: rows}
		for i := range shape.Candidates { // at most 6 rows; slower above
			us := 1e-6 * (10 + 10*math.Abs(float64(rows-1-i)))
			c.Blocks = append(c.Blocks, []float64{us, us, us, us, us})
		}
		cells = append(cells, c)
	}
	m := Summarize(shape, cells).Measured
	if m.M1 != 2 || m.M2 != 5 {
		t.Errorf("M1 %d, M2 %d; expected 2 and 5", m.M1, m.M2)
	}
}
