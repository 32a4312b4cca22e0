//go:build unix

package server

import (
	"net/http"
	"slices"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// A generation holds the parameters of generate besides those of sampling.
type generation struct {
	ids        []int32
	text       string // for the log
	param      string // key of the request that contains the prompt
	limit      *int
	eos        []int32
	constraint *Constraint
	logprobs   int
	echo       bool
	reasoning  func() decode.Reasoning // of a choice; nil: tokens before the answer are not limited
	ended      func()                  // called when the generation has ended; may be nil
}

// generate starts the generation of a request's choices.
func (s *Server) generate(r *http.Request, p *sampling, g generation) (*answer, error) {
	limit, err := s.limit(g)
	if err != nil {
		return nil, err
	}
	if err := s.checkIDs("stop_token_ids", p.StopIDs); err != nil {
		return nil, err
	}
	for _, word := range p.BadWords {
		if err := s.checkIDs("bad_words_ids", word); err != nil {
			return nil, err
		}
	}
	if n := s.cfg.Sequences; p.choices() > n {
		return nil, invalid("n", "n: this service runs at most %d concurrent sequences", n)
	}
	if s.cfg.LogPrompts {
		s.cfg.Log.Info("prompt", "request", id(r), "tokens", len(g.ids), "text", g.text)
	}
	bytes := answerBytes(p.choices(), len(g.ids), limit, g.logprobs, g.echo)
	if err := s.take(r, "max_tokens", bytes); err != nil {
		return nil, err
	}
	stream, err := s.source(r, p, g, limit)
	if err != nil {
		s.giveBack(r, bytes)
		return nil, err
	}
	a := &answer{stream: stream}
	for i := range p.choices() {
		a.choices = append(a.choices, &choice{index: i, stop: decode.Stopper{Words: slices.Concat(p.Stop, s.cfg.Defaults.Stop)}})
	}
	return a, nil
}

// answerBytes estimates the memory of a request's answers until they are sent to a slow
// client: text, event and log-probabilities of each token.
func answerBytes(choices, prompt, limit, logprobs int, echo bool) int64 {
	const token, logprob, ranked = 96, 256, 160
	one, tokens := token, choices*limit
	if logprobs >= 0 {
		one += logprob + ranked*logprobs
		if echo {
			tokens += prompt
		}
	}
	return int64(choices*prompt*4) + int64(one)*int64(tokens)
}

// source starts beam search or sampling, depending on the strategy.
func (s *Server) source(r *http.Request, p *sampling, g generation, limit int) (eventSource, error) {
	name, err := p.strategy()
	if err != nil {
		return nil, err
	}
	if opt, ok, err := decode.ParseBeams(name); err != nil {
		return nil, invalid("strategy", "%v", err)
	} else if ok {
		return s.beams(r, p, g, opt, limit)
	}
	job, err := s.job(r, p.shared)
	if err != nil {
		return nil, err
	}
	samplers, err := s.samplers(r, p, g, limit)
	if err != nil {
		return nil, err
	}
	drafter, err := s.drafter(p)
	if err != nil {
		return nil, err
	}
	return s.cfg.Scheduler.Generate(r.Context(), scheduler.Generation{
		Job: job, Prompt: g.ids, Samplers: samplers, Max: limit, EOS: g.eos, Logprobs: g.logprobs, Echo: g.echo, Drafter: drafter, Ended: g.ended,
	})
}

// limit returns the maximum number of generated tokens.
func (s *Server) limit(g generation) (int, error) {
	prompt, asked := len(g.ids), g.limit
	if prompt == 0 {
		return 0, invalid(g.param, "the prompt is empty")
	}
	room := s.cfg.Context - prompt
	if d := &s.cfg.Defaults; asked == nil && d.MaxTokens > 0 {
		asked = &d.MaxTokens
	} else if asked == nil && d.MaxLength > prompt {
		asked = new(d.MaxLength - prompt)
	} else if asked != nil && *asked < 0 {
		return 0, invalid("max_tokens", "max_tokens: expected 0 or more")
	}
	if room < 0 || room == 0 && or(asked, 1) > 0 {
		most := s.cfg.Context
		if room == 0 {
			most-- // one is for the answer
		}
		return 0, s.tooLong(g.param, prompt, most)
	}
	return min(or(asked, room), room), nil
}
