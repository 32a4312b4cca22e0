//go:build unix

package scheduler

import (
	"context"
	"fmt"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// Logprobs returns the log-probability of each of tokens[from:] given all tokens before
// it, and the most probable tokens at its position, as many as top says. The form is that
// of Generation.Logprobs. from is at least 1, because a first token has no probability.
func (s *Scheduler) Logprobs(ctx context.Context, j Job, tokens []int32, from, top int) ([]Event, error) {
	if s.out < 0 {
		return nil, fmt.Errorf("the model has no logits output, so it cannot rank tokens")
	}
	events := make([]Event, 0, len(tokens)-from)
	last := len(tokens) - 1 // the last token's row predicts a token outside the list
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

// rank sets an event's log-probability and the top most probable tokens.
func (e *Event) rank(row []float32, top int) error {
	total, err := decode.LogSumExp(row)
	if err != nil {
		return err
	}
	e.Logprob = float64(row[e.Token]) - total
	if top > 0 {
		e.Top = decode.Top(row, total, top)
	}
	return nil
}

// echo adds events for the prompt's tokens that a result's rows predict.
func (g *generate) echo(r engine.Result) error {
	for i := range r.Rows {
		at := r.First + i
		if at == 0 {
			g.events = append(g.events, Event{Index: -1, Token: g.Prompt[0], First: true})
		}
		if at+1 == len(g.Prompt) {
			break
		}
		e := Event{Index: -1, Token: g.Prompt[at+1]}
		if err := e.rank(g.row(r, i), g.Logprobs); err != nil {
			return err
		}
		g.events = append(g.events, e)
	}
	return nil
}
