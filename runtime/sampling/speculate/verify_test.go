package speculate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

const words = 4 // vocabulary size of the tables below

// logitsOf returns the row after some tokens of the model with a given number.
func logitsOf(model uint64, text []int32) []float32 {
	for _, token := range text {
		model = model*31 + uint64(token) + 1
	}
	r := rand.New(rand.NewPCG(model, 1))
	row := make([]float32, words)
	for i := range row {
		row[i] = float32(1.2 * r.NormFloat64())
	}
	return row
}

// chanceOf returns the probability of a text of a model at temperature 1.
func chanceOf(model uint64, text []int32) float64 {
	p := 1.0
	for i, token := range text {
		sum, row := 0.0, logitsOf(model, text[:i])
		for _, l := range row {
			sum += math.Exp(float64(l))
		}
		p *= math.Exp(float64(row[token])) / sum
	}
	return p
}

func newSampler(t *testing.T, rule decode.Rule, seed uint64) *decode.Sampler {
	t.Helper()
	c, err := decode.NewSampler(decode.Settings{Options: decode.Options{Temperature: 1, Seed: seed}, Rule: rule}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// write generates a text of n tokens with drafts, like decoding: each step verifies the
// result of draft after the text so far. It returns the number of steps.
func write(t *testing.T, c *decode.Sampler, n int, draft func(text []int32) speculate.Draft) (text []int32, steps int) {
	t.Helper()
	for ; len(text) < n; steps++ {
		d, start := draft(text), len(text)
		_, err := speculate.Walk(d, func(node int, drafted int32, from []decode.TokenProb) (int32, bool, error) {
			line := []int32{}
			for at := node; at >= 0; at = int(d.Parent[at]) {
				line = append(line, d.Tokens[at])
			}
			slices.Reverse(line)
			if !slices.Equal(line, text[start:]) {
				t.Fatalf("a row of %v was asked for behind %v", line, text[start:])
			}
			token, err := c.Judge(logitsOf(1, text), text, drafted, from)
			text = append(text, token)
			return token, len(text) < n, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return text, steps
}

// drawn drafts k tokens sampled from model 2.
func drawn(t *testing.T, draw func([]float32) (int32, []decode.TokenProb, error), k int) func([]int32) speculate.Draft {
	return func(text []int32) (d speculate.Draft) {
		var path []int32
		for range k {
			token, from, err := draw(logitsOf(2, slices.Concat(text, path)))
			if err != nil {
				t.Fatal(err)
			}
			path, d.From = append(path, token), append(d.From, from)
		}
		d.Tree = speculate.Path(path...)
		return d
	}
}

// bushy drafts a tree of most texts of two tokens.
func bushy([]int32) (d speculate.Draft) {
	for i := range int32(words - 1) {
		at := int32(d.Len())
		d.Tokens, d.Parent = append(d.Tokens, i), append(d.Parent, -1)
		for j := range i + 1 {
			d.Tokens, d.Parent = append(d.Tokens, j), append(d.Parent, at)
		}
	}
	return d
}

// TestTextDistribution compares texts of three tokens with an enumeration, for sampled
// drafts with rejection and for deterministic trees.
func TestTextDistribution(t *testing.T) {
	t.Parallel()
	rejection, match := newSampler(t, decode.Rejection, 1), newSampler(t, decode.Match, 2)
	for _, method := range []struct {
		name    string
		sampler *decode.Sampler
		draft   func([]int32) speculate.Draft
	}{
		{"rejection", rejection, drawn(t, newSampler(t, decode.Rejection, 3).Draws(), 3)},
		{"a tree, match", match, bushy},
		{"a tree, rejection", newSampler(t, decode.Rejection, 4), bushy},
	} {
		const length, texts = 3, 40000
		counts, total := map[[length]int32]int{}, 0
		for range texts {
			text, steps := write(t, method.sampler, length, method.draft)
			counts[[length]int32(text)]++
			total += steps
		}
		x, free := 0.0, -1.0
		for i := range int32(words * words * words) {
			text := [length]int32{i / words / words, i / words % words, i % words}
			e := texts * chanceOf(1, text[:])
			x += (float64(counts[text]) - e) * (float64(counts[text]) - e) / e
			free++
		}
		if z := (math.Cbrt(x/free) - (1 - 2/(9*free))) / math.Sqrt(2/(9*free)); z > 4.26 { // less than once in 10⁵ times
			t.Errorf("%s: χ² = %.1f with %g degrees of freedom", method.name, x, free)
		}
		if total > texts*length*8/10 {
			t.Errorf("%s: %d steps for %d tokens", method.name, total, texts*length)
		}
	}
}

// TestSameTokens checks that with the rule match the text is that of plain decoding,
// token by token, at any temperature.
func TestSameTokens(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		plain, _ := write(t, newSampler(t, decode.Match, seed), 20, func([]int32) speculate.Draft { return speculate.Draft{} })
		for _, draft := range []func([]int32) speculate.Draft{bushy, drawn(t, newSampler(t, decode.Rejection, seed+1).Draws(), 4)} {
			if got, _ := write(t, newSampler(t, decode.Match, seed), 20, draft); !slices.Equal(got, plain) {
				t.Fatalf("seed %d: %v, without drafts %v", seed, got, plain)
			}
		}
	}
}
