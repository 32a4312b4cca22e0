//go:build unix

package server

import (
	"context"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/text/chat"
)

// A reader decodes tokens to text, reasoning and tool calls.
type reader interface {
	Push(id int32) chat.Delta
	Flush() chat.Delta
}

// A choice is the state of one choice of an answer.
type choice struct {
	index  int
	reader reader
	stop   decode.Stopper
	tokens int
	reason int    // tokens up to the last one that added reasoning
	finish string // "": not ended
	calls  bool   // it contains tool calls
	single bool   // it ends before a second tool call
}

// A piece is the part of a choice that one event, or all events, add.
type piece struct {
	index  int
	delta  chat.Delta
	events []scheduler.Event // tokens of the piece, EOS tokens included
	finish string

	generated int // tokens of all choices, up to this piece
}

// An answer collects the choices of a generation.
type answer struct {
	stream  eventSource
	choices []*choice
	cached  int

	drafted, accepted int // drafted and accepted tokens

	prompt []scheduler.Event // log-probabilities of the prompt, with echo
}

// next waits for events and returns the piece that each adds; none: the end.
func (a *answer) next(ctx context.Context) ([]piece, error) {
	for {
		events, err := a.stream.Next(ctx)
		if err != nil || len(events) == 0 {
			return nil, err
		}
		var pieces []piece
		for _, e := range events {
			a.cached = max(a.cached, e.Cached)
			a.drafted += e.Drafted
			a.accepted += e.Accepted
			if e.Index < 0 {
				a.prompt = append(a.prompt, e)
				continue
			}
			c := a.choices[e.Index]
			if c.finish != "" {
				continue // computed before the choice was stopped
			}
			p := piece{index: e.Index}
			c.add(&p, e)
			p.generated = a.generated()
			pieces = append(pieces, p)
			if c.finish != "" && e.Finish == "" {
				a.stream.Stop(e.Index)
			}
		}
		if len(pieces) > 0 {
			return pieces, nil
		}
	}
}

// add adds an event to a piece.
func (c *choice) add(p *piece, e scheduler.Event) {
	if e.Token >= 0 {
		c.tokens++
		p.events = append(p.events, e)
		if !e.End && c.reader != nil {
			c.merge(p, c.reader.Push(e.Token))
		}
	}
	if e.Finish != "" && !c.stop.Done {
		if c.reader != nil {
			c.merge(p, c.reader.Flush())
		}
		if !c.stop.Done {
			p.delta.Content += c.stop.Flush()
		}
		c.finish = e.Finish
	}
	if c.stop.Done {
		c.finish = scheduler.FinishStop
	}
	if c.finish == scheduler.FinishStop && c.calls {
		c.finish = "tool_calls"
	}
	p.finish = c.finish
}

// merge adds a delta to a piece.
func (c *choice) merge(p *piece, d chat.Delta) {
	if c.stop.Done {
		return
	}
	p.delta.Content += c.stop.Push(d.Content)
	p.delta.Reasoning += d.Reasoning
	if d.Reasoning != "" {
		c.reason = c.tokens
	}
	for _, call := range d.Calls {
		if c.single && call.Index > 0 {
			c.stop.Done = true
			return
		}
		c.calls = true
		p.delta.Calls = append(p.delta.Calls, call)
	}
}

// generated returns the number of generated tokens of all choices.
func (a *answer) generated() (n int) {
	for _, c := range a.choices {
		n += c.tokens
	}
	return n
}

// reasoning returns the number of generated tokens of reasoning.
func (a *answer) reasoning() (n int) {
	for _, c := range a.choices {
		n += c.reason
	}
	return n
}

// all waits for the end and returns one piece per choice.
func (a *answer) all(ctx context.Context) ([]piece, error) {
	whole := make([]piece, len(a.choices))
	for {
		pieces, err := a.next(ctx)
		if err != nil {
			return nil, err
		}
		if len(pieces) == 0 {
			return whole, nil
		}
		for _, p := range pieces {
			w := &whole[p.index]
			w.index = p.index
			w.delta.Content += p.delta.Content
			w.delta.Reasoning += p.delta.Reasoning
			w.delta.Calls = append(w.delta.Calls, p.delta.Calls...)
			w.events = append(w.events, p.events...)
			w.finish = p.finish
		}
	}
}

// usage is the usage object of an answer.
type usage struct {
	PromptTokens     int           `json:"prompt_tokens"`
	CompletionTokens int           `json:"completion_tokens"`
	TotalTokens      int           `json:"total_tokens"`
	Details          *usageDetails `json:"prompt_tokens_details,omitempty"`
	Completion       *usageParts   `json:"completion_tokens_details,omitempty"` // if any token was drafted or is reasoning
}

type usageDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// usageParts counts tokens of reasoning, and drafted tokens that were accepted and
// rejected.
type usageParts struct {
	Reasoning int `json:"reasoning_tokens"`
	Accepted  int `json:"accepted_prediction_tokens"`
	Rejected  int `json:"rejected_prediction_tokens"`
}

// add counts tokens of reasoning and drafted tokens.
func (u *usage) add(reasoning, drafted, accepted int) {
	if reasoning == 0 && drafted == 0 {
		return
	}
	if u.Completion == nil {
		u.Completion = &usageParts{}
	}
	u.Completion.Reasoning += reasoning
	u.Completion.Accepted += accepted
	u.Completion.Rejected += drafted - accepted
}

func (a *answer) usage(prompt int) *usage { return a.usageAfter(prompt, a.generated()) }

// usageAfter is the usage after n generated tokens.
func (a *answer) usageAfter(prompt, n int) *usage {
	u := &usage{PromptTokens: prompt, CompletionTokens: n, TotalTokens: prompt + n, Details: &usageDetails{a.cached}}
	u.add(a.reasoning(), a.drafted, a.accepted)
	return u
}
