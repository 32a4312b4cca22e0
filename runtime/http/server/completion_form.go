//go:build unix

package server

import "unicode/utf8"

// completionAnswer is a response, or a chunk of a stream.
type completionAnswer struct {
	ID          string             `json:"id"`
	Object      string             `json:"object"`
	Created     int64              `json:"created"`
	Model       string             `json:"model"`
	Fingerprint string             `json:"system_fingerprint"`
	Choices     []completionChoice `json:"choices"`
	Usage       *usage             `json:"usage,omitempty"`
}

type completionChoice struct {
	Text     string        `json:"text"`
	Index    int           `json:"index"`
	Logprobs *textLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
}

// An openAICompletion is the form of OpenAI's completions.
type openAICompletion struct {
	*completionRun
	head completionAnswer
}

func (c *openAICompletion) read(g *generation, _ *choice) reader { return c.s.textReader(g.ids) }

func (c *openAICompletion) whole(pieces [][]piece) any {
	out := c.head
	for at, list := range pieces {
		for _, p := range list {
			out.Choices = append(out.Choices, c.choice(at, p, true))
		}
	}
	out.Usage = c.usage(len(c.answers)-1, nil)
	return out
}

func (c *openAICompletion) events(at int, p piece, first bool) []any {
	if p.delta.Content == "" && p.finish == "" && c.req.Logprobs == nil && !(first && c.req.Echo) {
		return nil
	}
	chunk := c.head
	chunk.Choices = []completionChoice{c.choice(at, p, first)}
	if c.req.StreamOptions.continuous() {
		chunk.Usage = c.usage(at, &p)
	}
	return []any{chunk}
}

func (c *openAICompletion) end(out *sender) error {
	if c.req.StreamOptions.ends() {
		last := c.head
		last.Choices, last.Usage = []completionChoice{}, c.usage(len(c.answers)-1, nil)
		if err := out.add(last); err != nil {
			return err
		}
	}
	return out.done()
}

// choice returns a choice of an answer, or the part of one that a chunk adds. With
// echo, the first one of each choice starts with the prompt.
func (c *openAICompletion) choice(at int, p piece, first bool) completionChoice {
	out := completionChoice{Text: p.delta.Content, Index: at*c.req.choices() + p.index}
	if p.finish != "" {
		out.Finish = &p.finish
	}
	events := p.events
	offset := utf8.RuneCountInString(c.prompts[at].text)
	if first && c.req.Echo {
		out.Text = c.prompts[at].text + out.Text
		events = append(c.answers[at].prompt[:len(c.answers[at].prompt):len(c.answers[at].prompt)], events...)
		offset = 0
	}
	if c.req.Logprobs != nil {
		out.Logprobs = c.s.textLogprobs(events, offset)
	}
	return out
}

// usage returns the usage of the prompts up to one of them; p is its last piece, or nil
// if it has ended.
func (c *openAICompletion) usage(at int, p *piece) *usage {
	sum := &usage{Details: &usageDetails{}}
	for i, a := range c.answers[:at+1] {
		u := a.usage(len(c.prompts[i].ids))
		if i == at && p != nil {
			u = a.usageAfter(len(c.prompts[i].ids), p.generated)
		}
		sum.PromptTokens += u.PromptTokens
		sum.CompletionTokens += u.CompletionTokens
		sum.TotalTokens += u.TotalTokens
		sum.Details.CachedTokens += u.Details.CachedTokens
		sum.add(0, a.drafted, a.accepted)
	}
	return sum
}
