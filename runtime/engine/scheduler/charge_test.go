//go:build unix

package scheduler_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// TestCharge checks that a job is charged for the tokens that are computed for it: the
// prompt as far as it gets, without what the prefix cache holds, and generated tokens.
func TestCharge(t *testing.T) {
	t.Parallel()
	const chunk, length = 16, 150
	s, _ := start(t, devicetest.Manifest(), engine.Options{MaxTokens: chunk, MaxSeqs: 2, Context: 300, Prefix: true}, scheduler.Options{QueueTime: time.Minute})
	ids := prompt(rand.New(rand.NewPCG(1, 1)), length)
	greedy := decode.Settings{Options: decode.Options{Temperature: 0}}
	// run returns the charged tokens of a generation, and its generated tokens. It leaves
	// when more than most tokens are charged.
	run := func(ids []int32, n, most int) (charged, generated int, err error) {
		t.Helper()
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		total, ended := atomic.Int64{}, make(chan struct{})
		job := scheduler.Job{Charge: func(n int) {
			if total.Add(int64(n)) > int64(most) {
				leave()
			}
		}}
		if most < 0 {
			leave()
		}
		stream, err := s.Generate(ctx, scheduler.Generation{Job: job, Prompt: ids, Samplers: samplers(t, n, greedy, len(ids)), Max: 5, Logprobs: -1, Ended: func() { close(ended) }})
		if err != nil {
			t.Fatal(err)
		}
		lists, err := collect(ctx, stream, n)
		<-ended
		for _, list := range lists {
			generated += len(list)
		}
		return int(total.Load()), generated, err
	}
	if got, _, err := run(ids, 1, -1); got != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("left before the first step: %d tokens, %v", got, err)
	}
	if got, _, err := run(ids, 1, chunk); got != 2*chunk || !errors.Is(err, context.Canceled) {
		t.Errorf("left after the second step: %d tokens, expected %d, %v", got, 2*chunk, err)
	}
	if got, generated, err := run(ids, 2, 1000); err != nil || generated != 10 || got != length+generated {
		t.Errorf("%d tokens, expected %d of the prompt and %d of two answers, %v", got, length, generated, err)
	}
	const cached = 128 // whole pages
	if got, generated, err := run(ids, 1, 1000); err != nil || generated != 5 || got != length-cached+generated {
		t.Errorf("with a cached prefix: %d tokens, expected %d and %d, %v", got, length-cached, generated, err)
	}
}

// TestChargeOfOthers checks what beam searches, encoder-decoders and rows are charged.
func TestChargeOfOthers(t *testing.T) {
	t.Parallel()
	total := 0 // by the scheduler's goroutine
	job := scheduler.Job{Charge: func(n int) { total += n }}
	s, _ := start(t, devicetest.EncoderDecoder(), engine.Options{MaxSeqs: 4, Context: 100}, scheduler.Options{})
	found, err := s.Beams(t.Context(), scheduler.Search{Job: job, Prompt: []int32{1}, Source: []int32{9, 10, 11}, Options: decode.BeamOptions{Beams: 2, MaxLength: 5}, Best: 1})
	if want := 1 + 3 + 1 + 3*2; err != nil || len(found) != 1 || total != want { // the first step has one row
		t.Errorf("beams: %d tokens, expected %d, %v", total, want, err)
	}
	total = 0
	s, _ = start(t, devicetest.Manifest(), engine.Options{MaxSeqs: 4, Context: 100}, scheduler.Options{})
	if err := s.Rows(t.Context(), job, engine.Query{Tokens: []int32{9, 10, 11}, Last: 3}, func(engine.Result) error { return nil }); err != nil || total != 3 {
		t.Errorf("rows: %d tokens, expected 3, %v", total, err)
	}
}
