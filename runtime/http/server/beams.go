//go:build unix

package server

import (
	"context"
	"net/http"
	"slices"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// An eventSource returns the events of a generation, as a scheduler.Stream does.
type eventSource interface {
	Next(ctx context.Context) ([]scheduler.Event, error)
	Stop(index int)
}

// A search is a beam search as an eventSource. It returns all events at once, at the
// end of the search.
type search struct {
	s     *scheduler.Scheduler
	query scheduler.Search
	wait  func() ([]decode.Hypothesis, error)
	eos   []int32
	done  bool

	logprobs int  // number of most probable tokens to report with each token; -1: no log-probabilities
	echo     bool // also report log-probabilities of the prompt's tokens
}

// beams starts a beam search.
func (s *Server) beams(r *http.Request, p *sampling, g generation, opt decode.BeamOptions, limit int) (eventSource, error) {
	switch {
	case g.constraint != nil:
		return nil, invalid("response_format", "strategy beam does not support structured output (response_format, guided_regex, grammar) or required tool calls; use another strategy")
	case p.choices() > opt.Beams:
		return nil, invalid("n", "n: expected at most the number of beams, %d", opt.Beams)
	case opt.Beams > s.cfg.Sequences:
		return nil, invalid("strategy", "strategy: this service runs at most %d concurrent sequences", s.cfg.Sequences)
	case limit == 0:
		return nil, invalid("max_tokens", "max_tokens: expected 1 or more")
	case p.Speculate != "" && p.Speculate != "none":
		return nil, invalid("speculate", "speculate: beam search does not support speculative decoding; leave it out, or use another strategy")
	}
	job, err := s.job(r, p.shared)
	if err != nil {
		return nil, err
	}
	set, err := s.settings(p, g.eos, false)
	if err != nil {
		return nil, err
	}
	if set.Frequency != 0 || set.Presence != 0 {
		return nil, invalid("frequency_penalty", "strategy beam does not support frequency_penalty and presence_penalty; use repetition_penalty")
	}
	opt.Rules, opt.MaxLength = set.SearchRules(g.ids), len(g.ids)+limit
	b := &search{s: s.cfg.Scheduler, eos: g.eos, logprobs: g.logprobs, echo: g.echo, query: scheduler.Search{
		Job: job, Prompt: g.ids, Options: opt, Best: p.choices(), Ended: g.ended,
	}}
	b.wait, err = b.s.StartBeams(r.Context(), b.query)
	return b, err
}

// Next waits for the end of the search and returns the tokens of the best hypotheses.
func (b *search) Next(ctx context.Context) (events []scheduler.Event, err error) {
	if b.done {
		return nil, nil
	}
	b.done = true
	found, err := b.wait()
	if err != nil {
		return nil, err
	}
	prompt := len(b.query.Prompt)
	for i, h := range found {
		list, err := b.events(ctx, h, i == 0)
		if err != nil {
			return nil, err
		}
		for k := range list {
			e := &list[k]
			switch e.Index = i; {
			case k < len(list)-len(h.Tokens)+prompt:
				e.Index = -1
				continue
			case slices.Contains(b.eos, e.Token):
				e.End, e.Finish = true, scheduler.FinishStop
			case k == len(list)-1:
				e.Finish = scheduler.FinishLength
			}
		}
		events = append(events, list...)
	}
	return events, nil
}

// events returns the tokens of a hypothesis, after those of the prompt if first and
// echo are set. Their log-probabilities are computed by a second pass over the
// hypothesis, which returns bit-identical rows. That is cheaper than recording them for
// all beams, because few beams become hypotheses.
func (b *search) events(ctx context.Context, h decode.Hypothesis, first bool) (list []scheduler.Event, err error) {
	from := len(b.query.Prompt)
	if b.logprobs < 0 {
		for _, id := range h.Tokens[from:] {
			list = append(list, scheduler.Event{Token: id})
		}
		return list, nil
	}
	if first && b.echo {
		list, from = append(list, scheduler.Event{Token: h.Tokens[0], First: true}), 1
	}
	ranked, err := b.s.Logprobs(ctx, b.query.Job, h.Tokens, from, b.logprobs)
	return append(list, ranked...), err
}

// Stop does nothing: all events arrive at once.
func (b *search) Stop(int) {}
