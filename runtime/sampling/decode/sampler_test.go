package decode

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/irtest"
)

// rowOf returns a row of n random logits.
func rowOf(r *rand.Rand, n int) []float32 {
	row := make([]float32, n)
	for i := range row {
		row[i] = float32(r.NormFloat64() * 2)
	}
	return row
}

// distribution is a softmax in float64.
func distribution(logits []float64, temperature float64) []float64 {
	top, sum := slices.Max(logits), 0.0
	p := make([]float64, len(logits))
	for i, l := range logits {
		p[i] = math.Exp((l - top) / temperature)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// chiSquare compares counts with probabilities; it is about the number of cells if they
// agree.
func chiSquare(counts []int, p []float64) (x float64, kinds int) {
	total := 0
	for _, n := range counts {
		total += n
	}
	for i, n := range counts {
		e := p[i] * float64(total)
		if e < 5 {
			continue
		}
		kinds++
		x += (float64(n) - e) * (float64(n) - e) / e
	}
	return x, kinds
}

// A drawCase is settings with their expected distribution.
type drawCase struct {
	set  Settings
	want []float64
}

// drawHistory is the text before the sampled tokens.
var drawHistory = []int32{3, 4, 4, 5, 6}

// drawCases are settings with their definitions in float64.
func drawCases(row []float32) map[string]drawCase {
	keep := func(p []float64, ok func(i int) bool) []float64 {
		sum := 0.0
		for i := range p {
			if !ok(i) {
				p[i] = 0
			}
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
		return p
	}
	logits := func(change func(i int, l float64) float64) []float64 {
		out := make([]float64, len(row))
		for i, l := range row {
			out[i] = change(i, float64(l))
		}
		return out
	}
	same := func(_ int, l float64) float64 { return l }
	return map[string]drawCase{
		"temperature": {Settings{Options: Options{Temperature: 0.7}}, distribution(logits(same), 0.7)},
		"bias": {Settings{Options: Options{Temperature: 1}, Bias: map[int32]float32{7: 2.5, 9: -100}}, distribution(logits(func(i int, l float64) float64 {
			return l + map[int]float64{7: 2.5, 9: -100}[i]
		}), 1)},
		"repetition penalty": {Settings{Options: Options{Temperature: 1, Penalty: 1.7}}, distribution(logits(func(i int, l float64) float64 {
			switch {
			case i < 3 || i > 6:
				return l
			case l > 0:
				return l / 1.7
			}
			return l * 1.7
		}), 1)},
		"penalty window": {Settings{Options: Options{Temperature: 1, Penalty: 1.7, PenaltyWindow: 2}}, distribution(logits(func(i int, l float64) float64 {
			switch {
			case i != 5 && i != 6: // of 3, 4, 4, 5, 6
				return l
			case l > 0:
				return l / 1.7
			}
			return l * 1.7
		}), 1)},
		"suppress":      {Settings{Options: Options{Temperature: 1}, Rules: Rules{Suppress: []int32{1, 2}}}, keep(distribution(logits(same), 1), func(i int) bool { return i != 1 && i != 2 })},
		"min tokens":    {Settings{Options: Options{Temperature: 1}, Rules: Rules{MinNew: 3, EOS: []int32{8}}}, keep(distribution(logits(same), 1), func(i int) bool { return i != 8 })},
		"no repeat":     {Settings{Options: Options{Temperature: 1}, Rules: Rules{NoRepeat: 1}}, keep(distribution(logits(same), 1), func(i int) bool { return i < 3 || i > 6 })},
		"top-k, then p": {Settings{Options: Options{Temperature: 1, TopK: 6, TopP: 0.6}}, topKP(distribution(logits(same), 1), 6, 0.6)},
	}
}

// TestSamplerDistributions compares samples with the definitions by the χ² statistic.
func TestSamplerDistributions(t *testing.T) {
	t.Parallel()
	const vocab, draws = 40, 20000
	row := rowOf(rand.New(rand.NewPCG(5, 9)), vocab)
	for name, c := range drawCases(row) {
		counts := make([]int, vocab)
		for i := range draws {
			set := c.set
			set.Seed = uint64(i)
			ch, err := NewSampler(set, len(drawHistory))
			if err != nil {
				t.Fatal(err)
			}
			token, err := ch.Next(row, drawHistory)
			if err != nil {
				t.Fatal(err)
			}
			counts[token]++
		}
		for i, n := range counts {
			if c.want[i] == 0 && n > 0 {
				t.Errorf("%s: token %d was drawn", name, i)
			}
		}
		if x, kinds := chiSquare(counts, c.want); x > float64(kinds)+6*math.Sqrt(2*float64(kinds)) {
			t.Errorf("%s: χ² %.1f for %d kinds", name, x, kinds)
		}
	}
}

// topKP keeps the k most probable, and the fewest of these with a total probability of
// p.
func topKP(dist []float64, k int, p float64) []float64 {
	order := make([]int, len(dist))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if dist[a] > dist[b] {
			return -1
		}
		return 1
	})
	out, sum := make([]float64, len(dist)), 0.0
	for _, i := range order[:k] {
		sum += dist[i]
	}
	kept := 0.0
	for _, i := range order[:k] {
		out[i] = dist[i] / sum
		if kept += out[i]; kept >= p {
			break
		}
	}
	for i := range out {
		out[i] /= kept
	}
	return out
}

// TestSamplerPenalties checks that frequency and presence penalties count generated
// tokens and not the prompt.
func TestSamplerPenalties(t *testing.T) {
	t.Parallel()
	c, err := NewSampler(Settings{Frequency: 1, Presence: 0.5}, 2)
	if err != nil {
		t.Fatal(err)
	}
	row := []float32{0, 2, 1.2, 0.4}
	history := []int32{1, 1}
	var got []int32
	// 1: 2 → 0.5 after one; 2: 1.2 → -0.3; 1 again (0.5): → -0.5; 3: 0.4; …
	for range 5 {
		token, err := c.Next(row, history)
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, token)
		got = append(got, token)
	}
	if want := []int32{1, 2, 1, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	if row[1] != 2 {
		t.Error("the logits were changed")
	}
}

// evens allows three even tokens.
type evens struct{ n int }

func (e *evens) Ready(func()) bool        { return true }
func (e *evens) Mask() ([]uint64, error)  { return []uint64{0x5555555555555555}, nil }
func (e *evens) Accept(token int32) error { e.n++; return nil }
func (e *evens) Done() bool               { return e.n == 3 }

func TestSamplerMask(t *testing.T) {
	t.Parallel()
	row := []float32{0, 5, 1, 9, 0.5}
	for _, strategy := range []string{"", "fsd", "greedy", "mirostat1", "typical"} {
		c, err := NewSampler(Settings{Strategy: strategy, Mask: &evens{}, Options: Options{Temperature: 1}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			token, err := c.Next(row, []int32{1, 2, 3})
			if err != nil || token%2 != 0 {
				t.Errorf("%q: token %d, %v", strategy, token, err)
			}
			if c.Done() != (i == 2) {
				t.Errorf("%q: done after %d", strategy, i+1)
			}
		}
	}
	c, err := NewSampler(Settings{Mask: &evens{}, Bias: map[int32]float32{0: never, 2: never, 4: never}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(row, nil); !errors.Is(err, ErrForbidden) {
		t.Errorf("nothing is allowed: %v", err)
	}
}

func TestSamplerErrors(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for want, set := range map[string]Settings{
		"frequency":          {Frequency: nan},
		"presence":           {Presence: 200},
		"bias":               {Bias: map[int32]float32{1: float32(nan)}},
		"repetition penalty": {Options: Options{Penalty: -1}, Strategy: "greedy"},
		"typical":            {Options: Options{Typical: 2}},
		"tail-free":          {Options: Options{TailFree: nan}},
		"cannot be combined": {Options: Options{TopK: 3}, Strategy: "greedy"},
		"unknown strategy":   {Strategy: "best"},
	} {
		if _, err := NewSampler(set, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, expected %q", set, err, want)
		}
	}
	c, err := NewSampler(Settings{Bias: map[int32]float32{0: 1}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next([]float32{0, float32(nan)}, nil); !errors.Is(err, ErrNaN) {
		t.Errorf("NaN: %v", err)
	}
}

// TestTop compares with a full sort.
func TestTop(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 1))
	row := rowOf(r, 300)
	row[17] = row[203] // equal logits
	ids, p := pooled(row, 300, 1)
	total, err := LogSumExp(row)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{0, 1, 5, 300, 400} {
		top := Top(row, total, k)
		if len(top) != min(k, 300) {
			t.Fatal(len(top))
		}
		for i, x := range top {
			if int(x.ID) != ids[i] || math.Abs(x.Logprob-math.Log(p[i])) > 1e-9 {
				t.Errorf("rank %d: %+v, expected %d with %v", i, x, ids[i], math.Log(p[i]))
			}
		}
	}
}

// TestMirostat1 compares the kept tokens with the paper's formulas in float64 and
// checks that the surprise approaches its target.
func TestMirostat1(t *testing.T) {
	t.Parallel()
	// An exact Zipf law has its exponent.
	pool := make([]candidate, 5000)
	for i := range pool {
		pool[i] = candidate{id: int32(i), logit: float32(-1.3 * math.Log(float64(i+1)))}
	}
	softmax(pool, 1)
	if s := zipfExponent(pool, 100); math.Abs(s-1.3) > 1e-4 {
		t.Errorf("exponent %v, expected 1.3", s)
	}
	e := 0.3
	want := math.Pow(e*math.Pow(2, 6)/(1-math.Pow(5000, -e)), 1/1.3)
	if k := zipfFront(1.3, 6, 5000); k != int(math.Round(want)) {
		t.Errorf("%d tokens, expected %v", k, want)
	}
	for _, c := range []struct {
		s, mu float64
	}{{1, 3}, {0.5, 200}, {1e-3, 1}, {9, -50}} {
		if k := zipfFront(c.s, c.mu, 5000); k < 1 || k > 5000 {
			t.Errorf("%+v: %d tokens", c, k)
		}
	}
	row := make([]float32, 5000)
	for i := range row {
		row[i] = pool[i].logit
	}
	s, err := NewStrategy(StrategyOptions{Name: "mirostat1:tau=3,eta=0.1", Temperature: 1})
	if err != nil {
		t.Fatal(err)
	}
	sum, n := 0.0, irtest.Rounds(1000, 3000)
	for range n {
		token, err := s.Next(row, nil)
		if err != nil {
			t.Fatal(err)
		}
		sum -= math.Log2(pool[token].p)
	}
	if mean := sum / float64(n); math.Abs(mean-3) > 1 {
		t.Errorf("surprise %.2f bits, expected about 3", mean)
	}
}

// TestPenaltyWindow: frequency and presence penalties count the generated tokens among
// the last ones, never the prompt's.
func TestPenaltyWindow(t *testing.T) {
	t.Parallel()
	logits := []float32{0, 3, 3.5, 4}
	for window, want := range map[int][]int32{
		0: {3, 2, 1, 3, 2, 3}, // each picked token falls by 1.5 for good
		1: {3, 2, 3, 2, 3, 2}, // only the last one
		2: {3, 2, 1, 3, 2, 1},
	} {
		s, err := NewSampler(Settings{Options: Options{PenaltyWindow: window}, Frequency: 0.5, Presence: 1}, 2)
		if err != nil {
			t.Fatal(err)
		}
		history := []int32{3, 3}
		for range want {
			id, err := s.Next(logits, history)
			if err != nil {
				t.Fatal(err)
			}
			history = append(history, id)
		}
		if !slices.Equal(history[2:], want) {
			t.Errorf("window %d: %v, expected %v", window, history[2:], want)
		}
	}
}

// TestLightPenalty checks that a repetition penalty of the last tokens gives the same tokens
// with and without a copy of the row.
func TestLightPenalty(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 100 {
		set := Settings{Options: Options{
			Temperature: 0.3 + 2*rng.Float64(), TopK: 1 + rng.IntN(50), TopP: rng.Float64(), MinP: rng.Float64() / 10,
			Penalty: 1 + rng.Float64(), PenaltyWindow: 1 + rng.IntN(80), Seed: uint64(trial),
		}}
		light, err := NewSampler(set, 0)
		if err != nil || !light.light {
			t.Fatal(err)
		}
		whole, _ := NewSampler(set, 0)
		whole.light = false
		vocab := 1 + rng.IntN(400)
		row, history := make([]float32, vocab), []int32{}
		for range 20 {
			for i := range row {
				row[i] = float32(rng.IntN(40)-20) / 2 // with equal ones
			}
			a, err := light.Next(row, history)
			b, wrong := whole.Next(row, history)
			if err != nil || wrong != nil || a != b {
				t.Fatalf("trial %d: tokens %d (%v) and %d (%v)", trial, a, err, b, wrong)
			}
			history = append(history, a)
		}
	}
}
