//go:build unix

package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/text/chat"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// completionRequest is the body of /v1/completions.
type completionRequest struct {
	sampling
	Model         string         `json:"model"`          // name of the served model; may be left out
	Prompt        prompts        `json:"prompt"`         // a text, an array of texts, token ids, or an array of arrays of token ids
	Suffix        *string        `json:"suffix"`         // refused unless empty
	MaxTokens     *int           `json:"max_tokens"`     // maximum number of generated tokens; default: the rest of the context
	Stream        bool           `json:"stream"`         // send server-sent events, one per token
	StreamOptions *streamOptions `json:"stream_options"` // options of a stream
	Logprobs      *int           `json:"logprobs"`       // number of most probable tokens to return at each position, with their log-probabilities
	Echo          bool           `json:"echo"`           // return the prompt before the answer; with logprobs also its log-probabilities
	BestOf        *int           `json:"best_of"`        // accepted only as n

	unsupported
	unsupportedText
}

// prompts is the value of "prompt" or "input": a text, a list of texts, a list of token
// ids, or a list of such lists.
type prompts []promptInput

type promptInput struct {
	text string
	ids  []int32 // nil: text is set
}

// maxPrompts bounds the number of prompts of a request.
const maxPrompts = 256

// UnmarshalJSON accepts all forms of prompts.
func (p *prompts) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*p = prompts{{text: text}}
		return nil
	}
	var ids []int32
	if json.Unmarshal(data, &ids) == nil && len(ids) > 0 {
		*p = prompts{{ids: ids}}
		return nil
	}
	var texts []string
	if json.Unmarshal(data, &texts) == nil && len(texts) > 0 {
		for _, t := range texts {
			*p = append(*p, promptInput{text: t})
		}
		return nil
	}
	var lists [][]int32
	if json.Unmarshal(data, &lists) == nil && len(lists) > 0 {
		for _, ids := range lists {
			*p = append(*p, promptInput{ids: append([]int32{}, ids...)})
		}
		return nil
	}
	return invalid("prompt", "prompt: expected a text, a list of token ids, or a list of texts or of such lists")
}

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

// A completionRun holds the generations of all prompts of a request.
type completionRun struct {
	s       *Server
	req     *completionRequest
	prompts []generation
	answers []*answer    // by prompt; valid after a nil from begun
	begun   []chan error // receive the start error of each prompt; none follows an error
	texts   []string
	tokens  []int // prompt tokens by prompt
	head    completionAnswer
}

// completions answers /v1/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) error {
	var req completionRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	run, err := s.startCompletions(r, &req)
	if err != nil {
		return err
	}
	if req.Stream {
		return run.stream(w, r)
	}
	for at := range run.prompts {
		a, err := run.answer(at)
		if err != nil {
			return err
		}
		pieces, err := a.all(r.Context())
		if err != nil {
			return err
		}
		for _, p := range pieces {
			run.head.Choices = append(run.head.Choices, run.choice(at, p, true))
		}
	}
	run.head.Usage = run.usage()
	writeJSON(w, http.StatusOK, run.head)
	return nil
}

func (s *Server) startCompletions(r *http.Request, req *completionRequest) (*completionRun, error) {
	if err := s.checkCompletion(req); err != nil {
		return nil, err
	}
	constraint, err := req.constraint()
	if err != nil {
		return nil, err
	}
	run := &completionRun{s: s, req: req, head: completionAnswer{
		ID: newID("cmpl-"), Object: "text_completion", Created: time.Now().Unix(), Model: s.cfg.Model, Fingerprint: s.fingerprint(),
	}}
	limit := req.MaxTokens
	if limit == nil && s.cfg.Defaults.MaxTokens == 0 {
		n := 16 // OpenAI's default
		limit = &n
	}
	logprobs := -1
	if req.Logprobs != nil {
		logprobs = *req.Logprobs
	}
	for _, p := range req.Prompt {
		ids, err := s.promptIDs(r, "prompt", p)
		if err != nil {
			return nil, err
		}
		g := generation{
			ids: ids, text: p.text, param: "prompt", limit: limit, eos: req.eos(s.cfg.Defaults.EOS), constraint: constraint, logprobs: logprobs, echo: req.Echo && logprobs >= 0,
		}
		if _, err := s.limit(g); err != nil {
			return nil, err
		}
		if p.ids != nil && s.cfg.Tokenizer != nil {
			p.text = s.cfg.Tokenizer.Decode(ids, false)
		}
		run.prompts, run.texts, run.tokens = append(run.prompts, g), append(run.texts, p.text), append(run.tokens, len(ids))
	}
	run.start(r)
	return run, nil
}

// start starts the generations of all prompts, but no more at a time than the service
// can run, so that a request with many prompts does not fill the queue.
func (c *completionRun) start(r *http.Request) {
	c.answers, c.begun = make([]*answer, len(c.prompts)), make([]chan error, len(c.prompts))
	for i := range c.begun {
		c.begun[i] = make(chan error, 1)
	}
	ended := make(chan struct{}, len(c.prompts)) // buffered, because the scheduler must not block
	begin := func(i int) (err error) {
		g := c.prompts[i]
		g.ended = func() { ended <- struct{}{} }
		if c.answers[i], err = c.s.generate(r, &c.req.sampling, g); err != nil {
			return err
		}
		for _, choice := range c.answers[i].choices {
			choice.reader = c.s.textReader(g.ids)
		}
		return nil
	}
	most, running := max(1, c.s.cfg.Sequences/c.req.choices()), 0
	one := func(i int) error {
		for {
			if running < most {
				err := begin(i)
				if running == 0 || !errors.Is(err, scheduler.ErrFull) {
					running++
					return err
				}
			}
			select { // each generation that ends makes room in the queue
			case <-ended:
				running--
			case <-r.Context().Done():
				return r.Context().Err()
			}
		}
	}
	go func() {
		for i := range c.prompts {
			err := one(i)
			if c.begun[i] <- err; err != nil {
				return
			}
		}
	}()
}

// answer returns the answer to prompt i once its generation has started.
func (c *completionRun) answer(i int) (*answer, error) {
	if err := <-c.begun[i]; err != nil {
		return nil, err
	}
	return c.answers[i], nil
}

func (s *Server) checkCompletion(req *completionRequest) error {
	if err := s.checkModel(req.Model); err != nil {
		return err
	}
	if err := refuseUnsupported(req.unsupported, req.unsupportedText); err != nil {
		return err
	}
	if err := req.checkMinTokens(req.MaxTokens); err != nil {
		return err
	}
	switch {
	case len(req.Prompt) == 0:
		return invalid("prompt", "prompt: expected a text or token ids")
	case len(req.Prompt) > maxPrompts:
		return invalid("prompt", "prompt: expected at most %d prompts", maxPrompts)
	case req.Suffix != nil && *req.Suffix != "":
		return invalid("suffix", "suffix: this service does not support fill-in-the-middle")
	case req.BestOf != nil && *req.BestOf != req.choices():
		return invalid("best_of", "best_of: expected the value of n")
	case req.Logprobs != nil && (*req.Logprobs < 0 || *req.Logprobs > maxRanked):
		return invalid("logprobs", "logprobs: expected a number between 0 and %d", maxRanked)
	case req.StreamOptions != nil && !req.Stream:
		return invalid("stream_options", "stream_options needs stream: true")
	}
	return req.check()
}

// checkIDs returns an error for token ids outside the vocabulary; param is the key that
// contains them.
func (s *Server) checkIDs(param string, ids []int32) error {
	for _, id := range ids {
		if n := s.cfg.Manifest.Vocab; id < 0 || int(id) >= n {
			return invalid(param, "token id %d: the vocabulary has %d tokens", id, n)
		}
	}
	return nil
}

// A textReader decodes tokens as plain text.
type textReader struct{ *tokenizer.Stream }

func (t textReader) Push(id int32) chat.Delta { return chat.Delta{Content: t.Stream.Push(id)} }
func (t textReader) Flush() chat.Delta        { return chat.Delta{Content: t.Stream.Flush()} }

// textReader returns a reader of the tokens after a prompt, or nil if there is no
// tokenizer.
func (s *Server) textReader(prompt []int32) reader {
	if s.cfg.Tokenizer == nil {
		return nil
	}
	stream := s.cfg.Tokenizer.NewStream(true)
	for _, id := range prompt {
		stream.Push(id)
	}
	return textReader{stream}
}

// choice returns a choice of an answer, or the part of one that a chunk adds. With
// echo, the first one of each choice starts with the prompt.
func (c *completionRun) choice(at int, p piece, first bool) completionChoice {
	out := completionChoice{Text: p.delta.Content, Index: at*c.req.choices() + p.index}
	if p.finish != "" {
		out.Finish = &p.finish
	}
	events := p.events
	offset := utf8.RuneCountInString(c.texts[at])
	if first && c.req.Echo {
		out.Text = c.texts[at] + out.Text
		events = append(c.answers[at].prompt[:len(c.answers[at].prompt):len(c.answers[at].prompt)], events...)
		offset = 0
	}
	if c.req.Logprobs != nil {
		out.Logprobs = c.s.textLogprobs(events, offset)
	}
	return out
}

func (c *completionRun) usage() *usage {
	sum := &usage{Details: &usageDetails{}}
	for i, a := range c.answers {
		u := a.usage(c.tokens[i])
		sum.PromptTokens += u.PromptTokens
		sum.CompletionTokens += u.CompletionTokens
		sum.TotalTokens += u.TotalTokens
		sum.Details.CachedTokens += u.Details.CachedTokens
		sum.add(a.drafted, a.accepted)
	}
	return sum
}

// stream sends the answers as server-sent events, one prompt after another.
func (c *completionRun) stream(w http.ResponseWriter, r *http.Request) error {
	out := newSender(w)
	for at := range c.prompts {
		a, err := c.answer(at)
		if err != nil {
			return out.fail(err)
		}
		begun := map[int]bool{} // choices with a first chunk, which contains the prompt with echo
		for {
			pieces, err := a.next(r.Context())
			if err != nil {
				return out.fail(err)
			}
			if len(pieces) == 0 {
				break
			}
			for _, p := range pieces {
				first := !begun[p.index]
				if p.delta.Content == "" && p.finish == "" && c.req.Logprobs == nil && !(first && c.req.Echo) {
					continue
				}
				begun[p.index] = true
				chunk := c.head
				chunk.Choices = []completionChoice{c.choice(at, p, first)}
				if err := out.add(chunk); err != nil {
					return err
				}
			}
			if err := out.flush(); err != nil {
				return err
			}
		}
	}
	if o := c.req.StreamOptions; o != nil && o.IncludeUsage {
		last := c.head
		last.Choices, last.Usage = []completionChoice{}, c.usage()
		if err := out.add(last); err != nil {
			return err
		}
	}
	return out.end()
}
