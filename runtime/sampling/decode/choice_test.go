package decode

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestChoices checks that a picker picks the sampler's tokens by its choices, some of them
// ahead, and that the sampler continues alike after tokens of either, also if a choice was
// made in vain.
func TestChoices(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 3))
	var p Picker
	for range 500 {
		opt := Options{Seed: r.Uint64()}
		if r.IntN(4) > 0 {
			opt.Temperature = 0.2 + r.Float64()*2
		}
		if r.IntN(2) == 0 {
			opt.TopK = 1 + r.IntN(90)
		}
		if r.IntN(2) == 0 {
			opt.TopP = r.Float64()
		}
		if r.IntN(3) == 0 {
			opt.MinP = r.Float64() * 0.3
		}
		if r.IntN(4) == 0 {
			opt.Typical = 0.1 + 0.8*r.Float64()
		}
		if r.IntN(4) == 0 {
			opt.TailFree = 0.1 + 0.8*r.Float64()
		}
		want, _ := NewSampler(Settings{Options: opt}, 0)
		got, _ := NewSampler(Settings{Options: opt}, 0)
		rows := make([][]float32, 6)
		for i := range rows {
			rows[i] = make([]float32, 300)
			for j := range rows[i] {
				rows[i][j] = float32(r.NormFloat64() * 3)
			}
		}
		var picked []int32
		for i, row := range rows[:3] {
			x, ok := got.Choice(i)
			if err := x.Check(); err != nil || !ok {
				t.Fatalf("%+v: %v, %v", opt, ok, err)
			}
			token, err := p.Pick(row, x)
			if err != nil {
				t.Fatal(err)
			}
			picked = append(picked, token)
		}
		for i, row := range rows {
			next := Row{Logits: func() []float32 { return row }}
			if i < 2 { // the third was chosen in vain
				next = Row{Chosen: true, Token: picked[i]}
			}
			a, err := want.Next(row, nil)
			b, err2 := got.JudgeRow(next, nil, -1, nil)
			if err != nil || err2 != nil || a != b {
				t.Fatalf("%+v: token %d is %d, expected %d (%v, %v)", opt, i, b, a, err, err2)
			}
		}
	}
}

// TestNoChoice checks which samplers make no choices.
func TestNoChoice(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]Settings{
		"penalty": {Options: Options{Penalty: 1.1}}, "frequency": {Frequency: 1}, "presence": {Presence: 1}, "bias": {Bias: map[int32]float32{3: 1}},
		"strategy": {Strategy: "mirostat2"}, "rule": {Options: Options{Temperature: 1}, Rule: Rejection}, "n-grams": {Rules: Rules{NoRepeat: 2}},
	} {
		s, err := NewSampler(set, 0)
		if err != nil {
			t.Fatal(err)
		}
		if x, ok := s.Choice(0); ok {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

// TestCheckChoice checks which choices are refused.
func TestCheckChoice(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	for _, x := range []Choice{
		{Random: 1}, {Random: -0.1}, {Random: nan}, {Options: Options{Temperature: nan}}, {Options: Options{Temperature: inf}}, {Options: Options{Temperature: -1}},
		{Options: Options{Temperature: 1e-9}}, {Options: Options{Temperature: 1e300}}, {Options: Options{TopK: -1}}, {Options: Options{TopP: 1.5}},
		{Options: Options{MinP: nan}}, {Options: Options{Typical: -1}}, {Options: Options{TailFree: 2}}, {Options: Options{Penalty: 1e9}},
	} {
		if x.Check() == nil {
			t.Errorf("%+v was accepted", x)
		}
	}
	if err := (Choice{Options: Options{Temperature: 0.7, TopK: 3}, Random: 0.5}).Check(); err != nil {
		t.Error(err)
	}
}
