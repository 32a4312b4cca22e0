//go:build unix

package scheduler

import (
	"context"
	"fmt"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// Rank gives the log-probabilities of tokens[from:], each after all before it,
// and the most likely in its place, as a Generation with Logprobs does. from is
// at least 1: nothing predicts a first token.
func (s *Scheduler) Rank(ctx context.Context, j Job, tokens []int32, from, top int) ([]Event, error) {
	if s.out < 0 {
		return nil, fmt.Errorf("the model gives no logits; it cannot rank tokens")
	}
	events := make([]Event, 0, len(tokens)-from)
	last := len(tokens) - 1 // its row predicts what is not there
	err := s.Rows(ctx, j, engine.Query{Tokens: tokens[:last], Last: last - from + 1}, func(r engine.Result) error {
		for i := range r.Rows {
			row := r.Row(s.out, i)
			e := Event{Token: tokens[r.First+i+1]}
			if err := e.rank(row[:min(s.opt.Vocab, len(row))], top); err != nil {
				return err
			}
			events = append(events, e)
		}
		return nil
	})
	return events, err
}

// rank fills in an event's log-probabilities, and those of the most likely.
func (e *Event) rank(row []float32, top int) (err error) {
	total, err := decode.LogSumExp(row)
	if err != nil {
		return err
	}
	e.Logprob = float64(row[e.Token]) - total
	if top > 0 {
		e.Top, err = decode.Top(row, top)
	}
	return err
}
