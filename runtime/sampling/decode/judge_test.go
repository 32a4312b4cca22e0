package decode

import (
	"math"
	"math/rand/v2"
	"testing"
)

// chiSquared returns Pearson's statistic of counts and probabilities, and the degrees
// of freedom.
func chiSquared(counts []int, p []float64) (x float64, free int) {
	n := 0
	for _, c := range counts {
		n += c
	}
	for i, c := range counts {
		if p[i] <= 0 {
			if c > 0 {
				return math.Inf(1), 1
			}
			continue
		}
		e := p[i] * float64(n)
		x += (float64(c) - e) * (float64(c) - e) / e
		free++
	}
	return x, free - 1
}

// unlikely reports whether a correct distribution exceeds the statistic less than once
// in 10⁵ times (Wilson and Hilferty 1931).
func unlikely(x float64, free int) bool {
	k := float64(free)
	z := (math.Cbrt(x/k) - (1 - 2/(9*k))) / math.Sqrt(2/(9*k))
	return z > 4.26
}

// TestJudgeDistribution checks that with rejection the tokens have the target's
// distribution, for any distribution of the drafts.
func TestJudgeDistribution(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for i, opt := range []Options{{Temperature: 1}, {Temperature: 0.7, TopK: 4}, {Temperature: 1.5, TopP: 0.8}, {Temperature: 1, MinP: 0.3}, {Temperature: 0}} {
		target, draft := make([]float32, 7), make([]float32, 7)
		for j := range target {
			target[j], draft[j] = float32(2*r.NormFloat64()), float32(2*r.NormFloat64())
		}
		opt.Seed = uint64(i)
		c, err := NewSampler(Settings{Options: opt, Rule: Rejection}, 0)
		if err != nil {
			t.Fatal(err)
		}
		other := opt
		other.Seed, other.Temperature = 99, 1 // a distribution that differs from the target's
		d, err := NewSampler(Settings{Options: other, Rule: Rejection}, 0)
		if err != nil {
			t.Fatal(err)
		}
		draw := d.Draws()
		counts, accepted := make([]int, 7), 0
		for range 30000 {
			drafted, from, err := draw(draft)
			if err != nil {
				t.Fatal(err)
			}
			token, err := c.Judge(target, nil, drafted, from)
			if err != nil {
				t.Fatal(err)
			}
			counts[token]++
			if token == drafted {
				accepted++
			}
		}
		x, free := chiSquared(counts, distributionOf(t, target, opt))
		if free > 0 && unlikely(x, free) || math.IsInf(x, 1) {
			t.Errorf("%+v: χ² = %.1f with %d degrees of freedom; counts %v", opt, x, free, counts)
		}
		p, q, least := distributionOf(t, target, opt), distributionOf(t, draft, other), 0.0
		for j := range p {
			least += min(p[j], q[j])
		}
		if share := float64(accepted) / 30000; share < least-0.02 {
			t.Errorf("%+v: %.3f of the drafts were accepted, expected at least Σ min(p, q) = %.3f", opt, share, least)
		}
	}
}

// distributionOf returns the distribution that a sampler samples from, a softmax over
// the candidates that remain.
func distributionOf(t *testing.T, logits []float32, opt Options) []float64 {
	t.Helper()
	s, err := NewStandardSampler(opt)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.distribution(logits)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]float64, len(logits))
	for _, x := range c {
		p[x.id] = x.p
	}
	return p
}

// TestDistribution checks that Judge's distribution is the one that Next samples from.
func TestDistribution(t *testing.T) {
	t.Parallel()
	logits := []float32{1, -0.5, 2, 0, 0.25, -3}
	for _, opt := range []Options{{Temperature: 1}, {Temperature: 0.8, TopK: 3}, {Temperature: 1, TopP: 0.7}, {Temperature: 1.3, MinP: 0.2}} {
		s, err := NewStandardSampler(opt)
		if err != nil {
			t.Fatal(err)
		}
		counts := make([]int, len(logits))
		for range 20000 {
			token, err := s.Next(logits, nil)
			if err != nil {
				t.Fatal(err)
			}
			counts[token]++
		}
		if x, free := chiSquared(counts, distributionOf(t, logits, opt)); unlikely(x, free) {
			t.Errorf("%+v: χ² = %.1f with %d degrees of freedom", opt, x, free)
		}
	}
}

// TestTopSampling checks that every token in the pool is accepted, and that the rule is
// refused without a pool.
func TestTopSampling(t *testing.T) {
	t.Parallel()
	if _, err := NewSampler(Settings{Options: Options{Temperature: 1}, Rule: TopSampling}, 0); err == nil {
		t.Error("top sampling without top_k, top_p or min_p was taken")
	}
	c, err := NewSampler(Settings{Options: Options{Temperature: 1, TopK: 2}, Rule: TopSampling}, 0)
	if err != nil {
		t.Fatal(err)
	}
	logits := []float32{9, 1, 0, -1}
	for range 200 {
		if token, err := c.Judge(logits, nil, 1, nil); err != nil || token != 1 {
			t.Fatal(token, err)
		}
		if token, err := c.Judge(logits, nil, 3, []TokenProb{{3, 1}}); err != nil || token > 1 {
			t.Fatal(token, err)
		}
	}
}
