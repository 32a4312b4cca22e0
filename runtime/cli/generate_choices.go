//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// choiceFlags request more than one plain continuation.
type choiceFlags struct {
	Choices  int `default:"1" placeholder:"1" help:"Number of continuations; of a beam search, the best ones."`
	Logprobs int `default:"-1" placeholder:"K" help:"With --json: print each token's log-probability and those of the K most probable tokens."`
}

// Maximum values.
const (
	mostChoices  = 128
	mostLogprobs = 1000
)

// A generatedChoice is one of several continuations in generate's JSON
// document.
type generatedChoice struct {
	Tokens       []int32        `json:"tokens"`
	Text         string         `json:"text"`
	FinishReason string         `json:"finish_reason"`
	Score        *float32       `json:"score,omitempty"` // beam search only
	Logprobs     []tokenLogprob `json:"logprobs,omitempty"`

	stop decode.Stopper
}

// A tokenLogprob is the natural logarithm of a token's probability.
type tokenLogprob struct {
	ID      int32          `json:"id"`
	Token   string         `json:"token,omitempty"`
	Logprob float64        `json:"logprob"`
	Top     []tokenLogprob `json:"top,omitempty"`
}

// generatedChoices is generate's JSON document with several continuations.
type generatedChoices struct {
	PromptTokens []int32            `json:"prompt_tokens"`
	Choices      []*generatedChoice `json:"choices"`
	Timings      struct {
		LoadS  float64 `json:"load_s"`
		TotalS float64 `json:"total_s"`
	} `json:"timings"`
}

// many generates all choices together; they share the prompt.
func (c *generateCmd) many(ctx context.Context, m *model, ids []int32, p *generatePlan) error {
	eng, err := m.engine(ctx, &c.engineFlags, engine.Options{Context: m.room(len(ids), p.most), MaxSeqs: max(c.Choices, p.beams.Beams)})
	if err != nil {
		return err
	}
	out := generatedChoices{PromptTokens: ids}
	out.Timings.LoadS = time.Since(m.Start).Seconds()
	s := scheduler.New(eng, scheduler.Options{Vocab: m.manifest.Vocab})
	defer s.Close()
	begin := time.Now()
	if p.search {
		out.Choices, err = c.search(ctx, m, s, ids, p)
	} else {
		out.Choices, err = c.draw(ctx, m, s, ids, p)
	}
	if err != nil {
		return err
	}
	out.Timings.TotalS = time.Since(begin).Seconds()
	if c.JSON {
		return writeJSON(m.Stdout, out)
	}
	for i, choice := range out.Choices {
		text := choice.Text
		if len(m.embedded.Tokenizer) == 0 {
			text = fmt.Sprint(choice.Tokens)
		}
		if len(out.Choices) > 1 {
			text = fmt.Sprintf("[%d] %s", i+1, text)
		}
		if _, err := fmt.Fprintln(m.Stdout, text); err != nil {
			return err
		}
	}
	return nil
}

func (c *generateCmd) checkChoices(beams decode.BeamOptions, search bool) error {
	switch {
	case c.Choices < 1 || c.Choices > mostChoices:
		return fmt.Errorf("--choices %d: expected a number between 1 and %d", c.Choices, mostChoices)
	case c.Logprobs > mostLogprobs:
		return fmt.Errorf("--logprobs %d: expected at most %d", c.Logprobs, mostLogprobs)
	case c.Logprobs >= 0 && !c.JSON:
		return errors.New("--logprobs needs --json")
	case c.N != nil && *c.N == 0:
		return errors.New("-n 0: choices, log-probabilities and beams need a number of tokens")
	case search && c.Logprobs >= 0:
		return errors.New("--logprobs and --strategy beam exclude each other: a beam search scores whole texts, not tokens")
	case search && c.Choices > beams.Beams:
		return fmt.Errorf("--choices %d: expected at most the %d beams", c.Choices, beams.Beams)
	case search && (c.Frequency != 0 || c.Presence != 0):
		return errors.New("--frequency-penalty and --presence-penalty do not go with --strategy beam; --repeat-penalty does")
	case search && c.asked():
		return c.errNoBeams("--strategy beam")
	}
	return nil
}

// eos returns the tokens that end a text.
func (c *generateCmd) eos(m *model) []int32 {
	list := slices.Clone(c.StopIDs)
	if !c.IgnoreEOS {
		list = append(list, m.manifest.EOS...)
	}
	return list
}

// search runs a beam search.
func (c *generateCmd) search(ctx context.Context, m *model, s *scheduler.Scheduler, ids []int32, p *generatePlan) ([]*generatedChoice, error) {
	opt := p.beams
	opt.MaxLength = len(ids) + min(p.most, m.manifest.Context-len(ids))
	opt.Rules = p.SearchRules(ids)
	opt.Rules.EOS = c.eos(m)
	if opt.MaxLength == len(ids) {
		return nil, wrong(fmt.Errorf("the prompt has %d tokens and fills the model's context", len(ids)))
	}
	found, err := s.Beams(ctx, scheduler.Search{Prompt: ids, Options: opt, Best: c.Choices})
	if err != nil {
		return nil, err
	}
	var list []*generatedChoice
	for _, h := range found {
		events := make([]scheduler.Event, 0, len(h.Tokens)-len(ids))
		for _, id := range h.Tokens[len(ids):] {
			events = append(events, scheduler.Event{Token: id, End: slices.Contains(opt.Rules.EOS, id)})
		}
		last := &events[len(events)-1]
		if last.Finish = scheduler.FinishLength; last.End {
			last.Finish = scheduler.FinishStop
		}
		choice := &generatedChoice{Score: &h.Score, stop: decode.Stopper{Words: p.stop}}
		stream, err := m.textStream(ids)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			choice.take(e, stream, nil)
		}
		list = append(list, choice)
	}
	return list, nil
}

// draw samples every choice token by token.
func (c *generateCmd) draw(ctx context.Context, m *model, s *scheduler.Scheduler, ids []int32, p *generatePlan) ([]*generatedChoice, error) {
	g := scheduler.Generation{Prompt: ids, Max: p.most, EOS: c.eos(m), Logprobs: c.Logprobs}
	list := make([]*generatedChoice, c.Choices)
	texts := make([]*tokenizer.Stream, c.Choices)
	set := p.Settings
	for i := range list {
		sampler, err := decode.NewSampler(set, len(ids))
		if err != nil {
			return nil, wrong(err)
		}
		sampler.Restart(len(ids), min(p.most, m.manifest.Context-len(ids)), nil)
		set.Seed++
		g.Samplers = append(g.Samplers, sampler)
		list[i] = &generatedChoice{stop: decode.Stopper{Words: p.stop}}
		if texts[i], err = m.textStream(ids); err != nil {
			return nil, err
		}
	}
	var name func(int32) string
	if c.Logprobs >= 0 {
		var err error
		if name, err = m.tokenNames(); err != nil {
			return nil, err
		}
	}
	stream, err := s.Generate(ctx, g)
	if err != nil {
		return nil, err
	}
	for {
		events, err := stream.Next(ctx)
		if err != nil || len(events) == 0 {
			return list, err
		}
		for _, e := range events {
			choice := list[e.Index]
			if choice.FinishReason != "" {
				continue // a step that was in flight when its stop text was found
			}
			if choice.take(e, texts[e.Index], name); choice.stop.Done {
				stream.Stop(e.Index)
			}
		}
	}
}

// take adds an event. text is nil for a model without a tokenizer. name formats
// tokens of log-probabilities; nil: none are wanted.
func (g *generatedChoice) take(e scheduler.Event, text *tokenizer.Stream, name func(int32) string) {
	if e.Token >= 0 {
		g.Tokens = append(g.Tokens, e.Token)
		if name != nil {
			g.Logprobs = append(g.Logprobs, rankedToken(e, name))
		}
		if !e.End && text != nil {
			g.Text += g.stop.Push(text.Push(e.Token))
		}
	}
	if g.FinishReason = e.Finish; e.Finish != "" && !g.stop.Done {
		if text != nil {
			g.Text += g.stop.Push(text.Flush())
		}
		g.Text += g.stop.Flush()
	}
	if g.stop.Done {
		g.FinishReason = scheduler.FinishStop
	}
}

// rankedToken returns an event's token with the most probable alternatives.
func rankedToken(e scheduler.Event, name func(int32) string) tokenLogprob {
	t := tokenLogprob{ID: e.Token, Token: name(e.Token), Logprob: max(e.Logprob, -math.MaxFloat32)}
	for _, r := range e.Top {
		t.Top = append(t.Top, tokenLogprob{ID: r.ID, Token: name(r.ID), Logprob: max(r.Logprob, -math.MaxFloat32)})
	}
	return t
}

// tokenNames formats tokens; those of a model without a tokenizer have no
// names.
func (m *model) tokenNames() (func(int32) string, error) {
	if len(m.embedded.Tokenizer) == 0 {
		return func(int32) string { return "" }, nil
	}
	t, err := m.tokenizer()
	if err != nil {
		return nil, err
	}
	return t.Token, nil
}
