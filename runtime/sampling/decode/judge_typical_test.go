package decode

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func typicalSampler(t *testing.T, temperature float64) *Sampler {
	t.Helper()
	c, err := NewSampler(Settings{Options: Options{Temperature: temperature}, Rule: TypicalAcceptance}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTypicalAcceptance checks that a drafted token is accepted exactly when the
// formula says so, and that others are sampled from the model's distribution.
func TestTypicalAcceptance(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const temperature = 0.8
	accepted, refused := 0, 0
	for range 300 {
		row := make([]float32, 8)
		sum := 0.0
		for i := range row {
			row[i] = float32(rng.NormFloat64() * 2)
			sum += math.Exp(float64(row[i]) / temperature)
		}
		entropy := 0.0
		for _, l := range row {
			q := math.Exp(float64(l)/temperature) / sum
			entropy -= q * math.Log(q+1e-5)
		}
		drafted := rng.Int32N(8)
		p := math.Exp(float64(row[drafted])/temperature) / sum
		c := typicalSampler(t, temperature)
		same := 0
		for range 20 {
			token, err := c.Judge(row, nil, drafted, nil)
			if err != nil {
				t.Fatal(err)
			}
			if token == drafted {
				same++
			}
		}
		if p > math.Min(0.09, 0.3*math.Exp(-entropy)) {
			accepted++
			if same != 20 {
				t.Fatalf("a token of probability %g was refused %d times of 20", p, 20-same)
			}
		} else if refused++; same > 12 { // with probability p < 0.09 each time
			t.Fatalf("a token of probability %g came %d times of 20", p, same)
		}
	}
	if accepted < 50 || refused < 50 {
		t.Errorf("%d accepted, %d refused", accepted, refused)
	}
}

// TestTypicalPath checks that the longest accepted path is selected, and only with this
// rule.
func TestTypicalPath(t *testing.T) {
	rows := map[int][]float32{-1: {3, 2.5, 0, 0}, 0: {0, 0, 0, 9}, 1: {0, 0, 5, 0}}
	row := func(node int) []float32 { return rows[node] }
	parent, tokens := []int32{-1, -1, 0, 1}, []int32{0, 1, 1, 2} // node 2 is rejected, node 3 accepted
	if got := typicalSampler(t, 1).Path(parent, tokens, row); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("%v, want the longer way by the second child", got)
	}
	if got := typicalSampler(t, 1).Path([]int32{-1}, []int32{3}, func(int) []float32 { return []float32{9, 0, 0, 0} }); got == nil || len(got) > 0 {
		t.Errorf("%v where nothing is accepted, want an empty path", got)
	}
	if got := typicalSampler(t, 0).Path(parent, tokens, row); got != nil {
		t.Errorf("%v at temperature 0, want none", got)
	}
	match, err := NewSampler(Settings{Options: Options{Temperature: 1}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := match.Path(parent, tokens, row); got != nil {
		t.Errorf("%v by another rule, want none", got)
	}
}
