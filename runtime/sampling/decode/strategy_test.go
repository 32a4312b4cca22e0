package decode

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// pooled computes a pool independently: the n most probable tokens in descending order,
// and their probabilities at a temperature.
func pooled(logits []float32, n int, temperature float64) (ids []int, p []float64) {
	for i := range logits {
		ids = append(ids, i)
	}
	slices.SortStableFunc(ids, func(a, b int) int { return cmp.Compare(logits[b], logits[a]) })
	ids = ids[:min(n, len(ids))]
	sum := 0.0
	for _, id := range ids {
		p = append(p, math.Exp(float64(logits[id])/temperature))
		sum += p[len(p)-1]
	}
	for i := range p {
		p[i] /= sum
	}
	return ids, p
}

// expectations return the candidates of a sorted pool that a strategy may sample.
var expectations = map[string]func(p []float64) []bool{
	"sample.std": func(p []float64) []bool { return upTo(p, 0.9, 8) },
	"sample.std:top_p=0.5,max_k=5,pool_size=20": func(p []float64) []bool { return upTo(p, 0.5, 5) },
	"top_k":          func(p []float64) []bool { return upTo(p, 1, 8) },
	"top_k:max_k=3":  func(p []float64) []bool { return upTo(p, 1, 3) },
	"greedy":         func(p []float64) []bool { return upTo(p, 0, 1) },
	"min_p:min_p=.3": func(p []float64) []bool { return where(p, func(i int) bool { return p[i] >= 0.3*p[0] }) },
	"mirostat:tau=2,eta=0": func(p []float64) []bool {
		return where(p, func(i int) bool { return i == 0 || -math.Log2(p[i]) <= 4 })
	},
	"typical:p=0.7": func(p []float64) []bool {
		h := 0.0
		for _, x := range p {
			h -= x * math.Log(x)
		}
		kept := make([]bool, len(p))
		for sum := 0.0; sum < 0.7; {
			best := -1
			for i := range p {
				if !kept[i] && (best < 0 || math.Abs(-math.Log(p[i])-h) < math.Abs(-math.Log(p[best])-h)) {
					best = i
				}
			}
			kept[best] = true
			sum += p[best]
		}
		return kept
	},
	"tfs:z=0.8": func(p []float64) []bool {
		var first, second []float64
		for i := 1; i < len(p); i++ {
			first = append(first, p[i-1]-p[i])
		}
		total := 0.0
		for i := 1; i < len(first); i++ {
			second = append(second, math.Abs(first[i-1]-first[i]))
			total += second[i-1]
		}
		n, sum := 0, 0.0
		for n < len(second) && sum+second[n]/total <= 0.8 {
			sum += second[n] / total
			n++
		}
		if n == len(second) {
			n = len(p)
		}
		return where(p, func(i int) bool { return i < max(n, 1) })
	},
}

func where(p []float64, keep func(int) bool) []bool {
	out := make([]bool, len(p))
	for i := range p {
		out[i] = keep(i)
	}
	return out
}

func upTo(p []float64, share float64, k int) []bool {
	sum, done := 0.0, false
	return where(p, func(i int) bool {
		keep := !done
		sum += p[i]
		done = done || sum >= share || i+1 == k
		return keep
	})
}

// TestStrategyDistributions compares samples with each strategy's definition by the χ²
// statistic.
func TestStrategyDistributions(t *testing.T) {
	t.Parallel()
	const draws = 8000
	r := rand.New(rand.NewPCG(8, 8))
	for name, allowed := range expectations {
		for _, temperature := range []float64{1, 0.6} {
			logits := make([]float32, 80)
			for i := range logits {
				logits[i] = float32(r.NormFloat64() * 2)
			}
			size := DefaultPool
			if strings.Contains(name, "pool_size") {
				size = 20
			}
			ids, p := pooled(logits, size, temperature)
			keep := allowed(p)
			total := 0.0
			for i := range p {
				if keep[i] {
					total += p[i]
				}
			}
			s, err := NewStrategy(StrategyOptions{Name: name, Temperature: temperature, Seed: 3})
			if err != nil {
				t.Fatal(err)
			}
			drawn := map[int32]int{}
			for range draws {
				id, err := s.Next(logits, nil)
				if err != nil {
					t.Fatal(err)
				}
				drawn[id]++
			}
			chi, cells, seen := 0.0, 0, 0
			for i, id := range ids {
				got := drawn[int32(id)]
				seen += got
				if !keep[i] {
					if got > 0 {
						t.Errorf("%s: candidate %d was drawn", name, i)
					}
					continue
				}
				want := p[i] / total * draws
				chi += (float64(got) - want) * (float64(got) - want) / want
				cells++
			}
			free := float64(cells - 1)
			if seen != draws || chi > free+5*math.Sqrt(2*free)+10 {
				t.Errorf("%s at %v: chi square %.1f for %d candidates, %d of %d from the pool", name, temperature, chi, cells, seen, draws)
			}
		}
	}
}

// TestMirostatMu checks that the mean surprise approaches tau bits.
func TestMirostatMu(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 9))
	logits := make([]float32, 200)
	for i := range logits {
		logits[i] = float32(r.NormFloat64())
	}
	for _, tau := range []string{"1", "2.5"} {
		s, err := NewStrategy(StrategyOptions{Name: "mirostat:pool_size=200,tau=" + tau, Temperature: 1, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		ids, p := pooled(logits, 200, 1)
		counts := map[int32]int{}
		for i := range 6000 {
			id, err := s.Next(logits, nil)
			if err != nil {
				t.Fatal(err)
			}
			if i >= 1000 {
				counts[id]++
			}
		}
		n, kept := 0, 0.0
		for i, id := range ids {
			if c := counts[int32(id)]; c > 0 {
				kept += p[i]
				n += c
			}
		}
		entropy := 0.0 // of the sampled tokens: about the mean surprise after the cut
		for _, c := range counts {
			q := float64(c) / float64(n)
			entropy -= q * math.Log2(q)
		}
		if want := map[string]float64{"1": 1, "2.5": 2.5}[tau]; math.Abs(entropy-want) > 0.6 {
			t.Errorf("tau %s: %.2f bits a token", tau, entropy)
		}
	}
}

// slowFSD computes the rule by counting in the text.
func slowFSD(ids []int, p []float64, text []int32, k, n int, alpha, beta float64) int32 {
	if len(text) < n-1 {
		return int32(ids[0])
	}
	follows := func(context []int32, token int32) (count, total int) {
		for at := len(context); at < len(text); at++ {
			if slices.Equal(text[at-len(context):at], context) {
				total++
				if text[at] == token {
					count++
				}
			}
		}
		return count, total
	}
	best, top := int32(-1), math.Inf(-1)
	for i := range min(k, len(ids)) {
		left, penalty := 1.0, 0.0
		for order := n - 1; order >= 1; order-- {
			if c, total := follows(text[len(text)-order:], int32(ids[i])); c > 0 {
				penalty += left * beta * float64(c) / float64(total+1)
				left *= 1 - beta
			}
		}
		c, total := follows(nil, int32(ids[i]))
		penalty += left * float64(c) / float64(total)
		if score := (1-alpha)*p[i] - alpha*penalty; score > top {
			best, top = int32(ids[i]), score
		}
	}
	return best
}

func TestFSD(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		k, n        int
		alpha, beta float64
	}{{"fsd", 6, 3, 0.5, 0.9}, {"sample.fsd:k=10,n=4,alpha=0.7,beta=0.6", 10, 4, 0.7, 0.6}, {"fsd:n=1", 6, 1, 0.5, 0.9}, {"fsd:n=8,k=50,beta=0.3", 50, 8, 0.5, 0.3}} {
		r := rand.New(rand.NewPCG(5, 5))
		s, err := NewStrategy(StrategyOptions{Name: c.name, Temperature: 1})
		if err != nil {
			t.Fatal(err)
		}
		text := []int32{3}
		for step := range 300 {
			logits := make([]float32, 12)
			for i := range logits {
				logits[i] = float32(r.NormFloat64())
			}
			got, err := s.Next(logits, text)
			if err != nil {
				t.Fatal(err)
			}
			ids, p := pooled(logits, DefaultPool, 1)
			if want := slowFSD(ids, p, text, c.k, c.n, c.alpha, c.beta); got != want {
				t.Fatalf("%s, step %d: token %d, expected %d", c.name, step, got, want)
			}
			text = append(text, got)
		}
	}
}

func TestRandomFSD(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 5))
	s, err := NewStrategy(StrategyOptions{Name: "random_fsd", Temperature: 1, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	text := []int32{3, 4, 5}
	other := 0
	for step := range 100 {
		logits := make([]float32, 12)
		for i := range logits {
			logits[i] = float32(r.NormFloat64())
		}
		got, err := s.Next(logits, text)
		if err != nil {
			t.Fatal(err)
		}
		ids, p := pooled(logits, DefaultPool, 1)
		if want := slowFSD(ids, p, text, 6, 3, 0.5, 0.9); got != want {
			if other++; step >= randomStart {
				t.Fatalf("step %d: token %d, expected %d", step, got, want)
			}
		}
		text = append(text, got)
	}
	if other == 0 {
		t.Error("no token was sampled")
	}
}

func TestStrategyEOSAndUnknown(t *testing.T) {
	t.Parallel()
	logits := []float32{5, 4, 3, 2}
	s, err := NewStrategy(StrategyOptions{Name: "greedy:eos_bypassing_max=2", EOS: []int32{1}, Exclude: []int32{0}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int32{2, 2, 1, 1} {
		if got, err := s.Next(logits, nil); got != want || err != nil {
			t.Errorf("token %d: %d, expected %d (%v)", i, got, want, err)
		}
	}
	if _, err := s.Next([]float32{float32(math.NaN()), 1}, nil); !errors.Is(err, ErrNaN) {
		t.Errorf("NaN: %v", err)
	}
}

func TestStrategyErrors(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"magic":                             "mirostat",
		"mirostat:k=3":                      "eta",
		"top_k:max_k=0":                     "whole number",
		"top_k:max_k=1.5":                   "whole number",
		"tfs:z=nan":                         "number",
		"fsd:n=":                            "number",
		"fsd:n=9":                           "n=9: expected a whole number from 1 to 8",
		"fsd:n=1000000":                     "from 1 to 8",
		"fsd:alpha=2":                       "from 0 to 1",
		"typical:p=-0.1":                    "from 0 to 1",
		"mirostat:tau=1e9":                  "from 0 to 100",
		"mirostat1:m=1e300":                 "from 1 to 1000000",
		"top_k:pool_size=2000":              "pool_size=2000: expected a whole number from 1 to 1024",
		"greedy:pool_size=nan":              "whole number",
		"magic" + strings.Repeat("!", 1000): "magic!",
		"sample.std:top_p=":                 "number",
	} {
		if _, err := NewStrategy(StrategyOptions{Name: name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, expected %q", name, err, want)
		}
	}
	if _, err := NewStrategy(StrategyOptions{Name: "greedy", Temperature: -1}); err == nil {
		t.Error("a negative temperature was taken")
	}
}
