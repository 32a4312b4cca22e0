//go:build unix

package engine_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
)

// readies runs steps until n sequences are ready. It returns the number of tokens of
// each step and the sequences that became ready in it.
func readies(t *testing.T, e *engine.Engine, n int) (tokens []int, ready [][]engine.ID) {
	t.Helper()
	for n > 0 {
		results, err := e.Infer(t.Context())
		if err != nil || len(results) == 0 {
			t.Fatalf("%v, %v after steps of %v tokens", results, err, tokens)
		}
		sum, list := 0, []engine.ID(nil)
		for _, r := range results {
			sum += r.Tokens()
			if r.Ready {
				list = append(list, r.ID)
				if err := e.Commit(r.ID, 9); err != nil {
					t.Fatal(err)
				}
			}
		}
		tokens, ready, n = append(tokens, sum), append(ready, list), n-len(list)
	}
	return tokens, ready
}

func add(t *testing.T, e *engine.Engine, lengths ...int) (ids []engine.ID) {
	t.Helper()
	r := rand.New(rand.NewPCG(9, 9))
	for _, n := range lengths {
		id, err := e.AddQuery(engine.Query{Tokens: prompt(r, n)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// TestBurst checks that the prompts of a burst are prefilled in full steps and start
// decoding together, that later prompts do not stop decoding requests, and that no
// request waits for a much longer prompt.
func TestBurst(t *testing.T) {
	t.Parallel()
	e := open(t, fake(t), engine.Options{MaxTokens: 20, MaxSeqs: 6, StepTime: time.Hour})
	add(t, e, 30, 31, 32)
	tokens, ready := readies(t, e, 6)
	if want := []int{16, 20, 20, 20, 17, 3}; !slices.Equal(tokens, want) || len(ready[4]) != 3 {
		t.Errorf("steps of %v tokens, ready %v; expected %v", tokens, ready, want)
	}
	for i := range ready[1:] {
		for _, id := range ready[i] {
			if !slices.Contains(ready[i+1], id) {
				t.Errorf("ready after the steps: %v; %d stopped", ready, id)
			}
		}
	}
	late := add(t, e, 30, 30)
	tokens, ready = readies(t, e, 3)
	if tokens[0] < 16 || len(ready[0]) < 2 {
		t.Errorf("steps of %v tokens, ready %v; expected those that generate beside the prompts %v", tokens, ready, late)
	}

	e = open(t, fake(t), engine.Options{MaxTokens: 20, MaxSeqs: 6, StepTime: time.Hour})
	ids := add(t, e, 90, 30)
	if tokens, ready := readies(t, e, 1); len(tokens) != 2 || ready[1][0] != ids[1] {
		t.Errorf("beside one of 90 tokens, one of 30 is ready after %v: %v", tokens, ready)
	}
}

// TestBurstFewPages checks that prompts of a burst that need more pages than there are
// are computed one after another.
func TestBurstFewPages(t *testing.T) {
	t.Parallel()
	e := open(t, fake(t), engine.Options{MaxTokens: 50, MaxSeqs: 3, Pages: 3, Context: 192, StepTime: time.Hour})
	add(t, e, 100, 100, 100)
	readies(t, e, 3)
}
