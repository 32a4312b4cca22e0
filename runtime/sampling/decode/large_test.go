package decode

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/iflowc/iflowc/ir/irtest"
)

// TestExp checks that exp equals math.Exp to two roundings.
func TestExp(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 200_000 {
		x := -700 * math.Pow(r.Float64(), 3)
		if i < 1000 {
			x = -float64(i) * math.Ln2 / 256 // at the table's arguments and halfway between them
		}
		got, want := exp(x), math.Exp(x)
		if e := math.Abs(got-want) / want; !(e <= 0x1p-51) {
			t.Fatalf("exp(%v) = %v, want %v: relative error %.2g", x, got, want, e)
		}
	}
	for _, x := range []float64{0, -700.5, -800, 1, math.Inf(-1), math.NaN()} {
		if got, want := exp(x), math.Exp(x); got != want && want == want {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
	}
}

// TestPick checks that sampling without a list of the vocabulary, or from its largest
// logits alone, picks the same tokens as with it.
func TestPick(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 3))
	for range irtest.Rounds(1000, 3000) {
		logits := make([]float32, 1+r.IntN(700))
		for i := range logits {
			logits[i] = float32(math.Round(r.NormFloat64()*40) / 10) // many equal logits
			if r.IntN(50) == 0 {
				logits[i] = float32(math.Inf(-1))
			}
		}
		logits[r.IntN(len(logits))] = 5
		opt := Options{Temperature: 0.2 + r.Float64()*2, Seed: r.Uint64()}
		if r.IntN(2) == 0 {
			opt.TopK = 1 + r.IntN(300)
		}
		if r.IntN(2) == 0 {
			opt.TopP = r.Float64()
		}
		if r.IntN(2) == 0 {
			opt.MinP = r.Float64() * 0.3
		}
		if r.IntN(4) == 0 {
			opt.Typical = 0.1 + 0.8*r.Float64()
		}
		fast, err := NewStandardSampler(opt)
		if err != nil {
			t.Fatal(err)
		}
		slow, _ := NewStandardSampler(opt)
		short, _ := NewSampler(Settings{Options: opt}, 0)
		var list []TokenLogit
		if opt.TopK > 0 {
			for _, c := range largest(nil, logits, opt.TopK, float32(math.Inf(-1))) {
				list = append(list, TokenLogit{c.id, c.logit})
			}
		}
		if n := short.TopK(); n != opt.TopK {
			t.Fatalf("%+v: %d logits suffice", opt, n)
		}
		top, _ := argmax(logits)
		for range 4 {
			got, want := fast.pick(logits, logits[top]), slow.draw(slow.candidates(logits, logits[top]))
			if got != want {
				t.Fatalf("%+v, %d logits: token %d, from a list of all %d", opt, len(logits), got, want)
			}
			read := false
			got, err := short.JudgeRow(Row{Top: list, Logits: func() []float32 { read = true; return logits }}, nil, -1, nil)
			if got != want || err != nil || read != (opt.TopK == 0 || len(list) < opt.TopK) {
				t.Fatalf("%+v, %d logits: token %d of the largest, %v, from a list of all %d; read the row: %v", opt, len(logits), got, err, want, read)
			}
		}
	}
}

// BenchmarkNext samples from 49,152 logits with a distribution like a language model's.
func BenchmarkNext(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, 49152)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 3)
	}
	for i := range 40 {
		logits[i*1000] += 12
	}
	for _, c := range []struct {
		name string
		opt  Options
	}{
		{"temperature", Options{Temperature: 1}},
		{"top_p", Options{Temperature: 0.8, TopP: 0.95}},
		{"top_k top_p", Options{Temperature: 0.8, TopK: 40, TopP: 0.95}},
		{"min_p", Options{Temperature: 1, MinP: 0.05}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := NewStandardSampler(c.opt)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := s.Next(logits, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
