//go:build unix

package engine_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
)

// readies runs steps until so many sequences are ready, and says how many tokens
// each step had and which sequences were ready after it.
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

// TestTogether: prompts of about one length that come together are read before
// the first of them begins, and all begin in one step.
func TestTogether(t *testing.T) {
	t.Parallel()
	e := open(t, fake(t), engine.Options{MaxTokens: 20, MaxSeqs: 6, StepTime: time.Hour})
	add(t, e, 30, 31, 32)
	tokens, ready := readies(t, e, 3)
	if want := []int{16, 20, 20, 20, 17}; !slices.Equal(tokens, want) || len(ready[4]) != 3 {
		t.Errorf("steps of %v tokens, ready %v; expected %v, and all ready after the last", tokens, ready, want)
	}
	late := add(t, e, 30, 30) // those in decoding do not wait, so that nobody has to
	tokens, ready = readies(t, e, 3)
	if tokens[0] < 16 || len(ready[0]) != 3 {
		t.Errorf("steps of %v tokens, ready %v; expected three in decoding beside the prompts %v", tokens, ready, late)
	}
}

// TestNotTogether: nobody waits for a prompt that is much longer, came much
// later or is less urgent, where steps have no time, or where all fits into a
// step.
func TestNotTogether(t *testing.T) {
	t.Parallel()
	opt := engine.Options{MaxTokens: 20, MaxSeqs: 6, StepTime: time.Hour}
	e := open(t, fake(t), opt)
	ids := add(t, e, 90, 30)
	if tokens, ready := readies(t, e, 1); len(tokens) != 2 || ready[1][0] != ids[1] {
		t.Errorf("beside one of 90 tokens, one of 30 is ready after %v: %v", tokens, ready)
	}

	e = open(t, fake(t), opt)
	first := add(t, e, 90)
	for range 4 {
		if _, err := e.Infer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	add(t, e, 90)
	if tokens, ready := readies(t, e, 1); len(tokens) != 1 || ready[0][0] != first[0] {
		t.Errorf("one that has 10 tokens left is ready after %v: %v", tokens, ready)
	}

	e = open(t, fake(t), opt)
	add(t, e, 6, 9)
	if tokens, ready := readies(t, e, 2); len(tokens) != 1 {
		t.Errorf("15 tokens in steps of %v: %v", tokens, ready)
	}

	opt.StepTime = 0
	e = open(t, fake(t), opt)
	add(t, e, 30, 31)
	if tokens, ready := readies(t, e, 1); len(tokens) != 2 {
		t.Errorf("without a time of steps: steps of %v, ready %v", tokens, ready)
	}
}

// TestTogetherBeside: one in decoding gets its token in every step, and waits for
// large ones where many more wait; of as many as wait it does not.
func TestTogetherBeside(t *testing.T) {
	t.Parallel()
	e := open(t, fake(t), engine.Options{MaxTokens: 40, MaxSeqs: 6, StepTime: time.Hour})
	add(t, e, 30)
	readies(t, e, 1)
	add(t, e, 30, 31, 32, 33)
	tokens, ready := readies(t, e, 8)
	// 126 tokens of prompts and one in each step of the one in decoding
	if want := []int{40, 40, 40, 10}; !slices.Equal(tokens, want) || len(ready[0]) != 1 || len(ready[3]) != 5 {
		t.Errorf("steps of %v tokens, ready %v; expected %v, one in each, and all after the last", tokens, ready, want)
	}

	e = open(t, fake(t), engine.Options{MaxTokens: 40, MaxSeqs: 6, StepTime: time.Hour})
	add(t, e, 20, 20, 20)
	readies(t, e, 3)
	add(t, e, 60, 60)
	_, ready = readies(t, e, 60)
	if i := slices.IndexFunc(ready, func(l []engine.ID) bool { return len(l) > 3 }); i < 1 || len(ready[i]) != 4 {
		t.Errorf("two beside three in decoding: ready %v; expected the first of them before the other", ready)
	}
}

// TestTogetherFewPages: those that wait for others give way when pages run out.
func TestTogetherFewPages(t *testing.T) {
	t.Parallel()
	e := open(t, fake(t), engine.Options{MaxTokens: 50, MaxSeqs: 3, Pages: 3, Context: 192, StepTime: time.Hour})
	add(t, e, 100, 100, 100)
	readies(t, e, 3)
}
