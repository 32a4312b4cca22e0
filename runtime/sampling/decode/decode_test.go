package decode

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func sampler(t *testing.T, opt Options) *StandardSampler {
	t.Helper()
	s, err := NewStandardSampler(opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// row contains logits in an order other than that of their indices.
var row = []float32{0.5, 2.0, -1.0, 2.5, 0.0, 1.5, -3.0, 2.25}

// expected computes the distribution of the options independently, from the
// definitions, over every token.
func expected(opt Options, logits []float32) []float64 {
	p := make([]float64, len(logits))
	order := make([]int, len(logits))
	sum := 0.0
	for i, l := range logits {
		p[i] = math.Exp(float64(l) / opt.Temperature)
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(math.Copysign(1, p[b]-p[a])) })
	keep := len(order)
	if opt.TopK > 0 {
		keep = min(keep, opt.TopK)
	}
	for _, i := range order[:keep] {
		sum += p[i]
	}
	if opt.TopP > 0 && opt.TopP < 1 {
		part := 0.0
		for n, i := range order[:keep] {
			part += p[i] / sum
			if part >= opt.TopP {
				keep = n + 1
				break
			}
		}
	}
	out := make([]float64, len(logits))
	total := 0.0
	for n, i := range order[:keep] {
		if n == 0 || p[i] >= opt.MinP*p[order[0]] {
			out[i] = p[i]
			total += p[i]
		}
	}
	for i := range out {
		out[i] /= total
	}
	return out
}

// TestDistributions compares frequencies with the exact probabilities by the
// chi-squared statistic. With at most 7 degrees of freedom, a correct sampler exceeds
// 29 once in ten thousand runs. The seed is fixed.
func TestDistributions(t *testing.T) {
	t.Parallel()
	for _, opt := range []Options{
		{Temperature: 1}, {Temperature: 0.5}, {Temperature: 2}, {Temperature: 1, TopK: 3}, {Temperature: 1, TopP: 0.7},
		{Temperature: 1, TopP: 0.9, TopK: 4}, {Temperature: 1, MinP: 0.3}, {Temperature: 0.7, TopK: 5, TopP: 0.95, MinP: 0.1}, {Temperature: 1, TopP: 1},
	} {
		opt.Seed = 42
		s := sampler(t, opt)
		const n = 40000
		counts := make([]int, len(row))
		for range n {
			id, err := s.Next(row, nil)
			if err != nil {
				t.Fatal(err)
			}
			counts[id]++
		}
		chi := 0.0
		for i, p := range expected(opt, row) {
			if p == 0 {
				if counts[i] != 0 {
					t.Errorf("%+v: token %d drawn %d times, must never be", opt, i, counts[i])
				}
				continue
			}
			d := float64(counts[i]) - n*p
			chi += d * d / (n * p)
		}
		if chi > 29 {
			t.Errorf("%+v: chi-squared %.1f, counts %v", opt, chi, counts)
		}
	}
}

// TestFront compares the selection with a sort, for many equal logits.
func TestFront(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		c := make([]candidate, 1+r.IntN(200))
		for i := range c {
			c[i] = candidate{id: int32(i), logit: float32(r.IntN(1 + r.IntN(100)))}
		}
		r.Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] })
		sorted := slices.Clone(c)
		slices.SortFunc(sorted, order)
		k := 1 + r.IntN(len(c)+3)
		front(c, k)
		k = min(k, len(c))
		if !slices.Equal(c[:k], sorted[:k]) {
			t.Fatalf("front of %d in %d differs from a sort", k, len(c))
		}
	}
}

func TestGreedy(t *testing.T) {
	t.Parallel()
	s := sampler(t, Options{Seed: 9, TopK: 4})
	for range 10 {
		if id, err := s.Next(row, nil); id != 3 || err != nil {
			t.Fatalf("token %d, %v", id, err)
		}
	}
	if id, _ := s.Next([]float32{1, 7, 7, 2}, nil); id != 1 {
		t.Errorf("of equals token %d, expected the first", id)
	}
	inf := float32(math.Inf(-1))
	if id, err := s.Next([]float32{inf, inf, -5}, nil); id != 2 || err != nil {
		t.Errorf("masked row: token %d, %v", id, err)
	}
}

func TestSeedRepeats(t *testing.T) {
	t.Parallel()
	a, b, c := sampler(t, Options{Temperature: 1, Seed: 7}), sampler(t, Options{Temperature: 1, Seed: 7}), sampler(t, Options{Temperature: 1, Seed: 8})
	same, other := 0, 0
	for range 200 {
		x, _ := a.Next(row, nil)
		y, _ := b.Next(row, nil)
		z, _ := c.Next(row, nil)
		if x == y {
			same++
		}
		if x != z {
			other++
		}
	}
	if same != 200 || other == 0 {
		t.Errorf("%d of 200 equal with one seed, %d different with another", same, other)
	}
}

func TestPenalty(t *testing.T) {
	t.Parallel()
	s := sampler(t, Options{Penalty: 2})
	if id, _ := s.Next(row, []int32{3, 3, 7}); id != 1 {
		t.Errorf("token %d, expected 1 after 3 and 7 are penalized", id)
	}
	if id, _ := s.Next([]float32{-1, -1.5}, []int32{0}); id != 1 {
		t.Errorf("token %d, expected a negative logit to fall", id)
	}
	if id, _ := s.Next(row, nil); id != 3 {
		t.Errorf("token %d without history", id)
	}
}

func TestNotNumbers(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, opt := range []Options{{}, {Temperature: 1}, {Temperature: 1, Penalty: 2}} {
		s := sampler(t, opt)
		for _, bad := range [][]float32{{nan, 1}, {1, nan}, {2, 1, nan}, {-inf, -inf}} {
			if _, err := s.Next(bad, []int32{0}); !errors.Is(err, ErrNaN) {
				t.Errorf("%+v %v: error %v", opt, bad, err)
			}
		}
		if id, err := s.Next([]float32{1, inf, 2}, nil); id != 1 || err != nil {
			t.Errorf("%+v: an infinite logit: token %d, %v", opt, id, err)
		}
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for _, opt := range []Options{{Temperature: -1}, {Temperature: math.NaN()}, {TopK: -1}, {TopP: 1.5}, {MinP: -0.1}, {Penalty: -1}, {PenaltyWindow: -1}, {Temperature: math.Inf(1)}} {
		if _, err := NewStandardSampler(opt); err == nil {
			t.Errorf("%+v was taken", opt)
		}
	}
}

func BenchmarkSample(b *testing.B) {
	logits := make([]float32, 49152)
	for i := range logits {
		logits[i] = float32(math.Sin(float64(i)*1.7)) * 8
	}
	for name, opt := range map[string]Options{"greedy": {}, "top-p": {Temperature: 0.8, TopP: 0.9}, "top-k": {Temperature: 0.8, TopK: 40}} {
		b.Run(name, func(b *testing.B) {
			s, _ := NewStandardSampler(opt)
			for b.Loop() {
				s.Next(logits, nil)
			}
		})
	}
}
