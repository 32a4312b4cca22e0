//go:build unix

package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/text/chat"
	"github.com/iflowc/iflowc/runtime/text/jinja"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// inferflowRequest is an Inferflow request.
type inferflowRequest struct {
	Header        inferflowHeader `json:"header"`                 // kind of request
	Text          string          `json:"text"`                   // the user's text
	SystemPrompt  string          `json:"system_prompt"`          // system prompt
	Prefix        string          `json:"res_prefix"`             // text that the answer begins with
	EncoderInput  string          `json:"encoder_input_template"` // refused unless empty
	DecoderInput  string          `json:"decoder_input_template"` // prompt template
	DecodingAlg   json.RawMessage `json:"decoding_alg"`           // sampling method, as strategy
	Seed          *int64          `json:"random_seed"`            // seed of the random numbers
	Temperature   *float64        `json:"temperature"`            // softmax temperature
	MaxOutput     *int            `json:"max_output_len"`         // maximum number of generated tokens; default 1,024
	MaxNew        *int            `json:"max_new_tokens"`         // another name of max_output_len
	Streaming     bool            `json:"is_streaming_mode"`      // stream the answer
	StreamingWord bool            `json:"stream"`                 // another name of is_streaming_mode
}

// inferflowHeader selects the function of a request.
type inferflowHeader struct {
	Fn string `json:"fn"` // "process_query" (default) or "get_stat"
}

// inferflowAnswer is Inferflow's response, or a part of a stream.
type inferflowAnswer struct {
	Code string  `json:"ret_code"`
	Text string  `json:"text"`
	Time float64 `json:"time_cost"` // seconds
	End  bool    `json:"is_end"`
}

// inferflowTokens is the default maximum of generated tokens.
const inferflowTokens = 1024

// inferflowPiece is the minimum bytes of text per part of a stream.
const inferflowPiece = 16

// inferflow answers Inferflow requests. Errors have a ret_code and the matching HTTP
// status.
func (s *Server) inferflow(w http.ResponseWriter, r *http.Request) error {
	start := time.Now()
	var req inferflowRequest
	if err := s.readJSON(r, &req); err != nil {
		return s.inferflowError(w, start, err, "error.invalid_request_format")
	}
	switch req.Header.Fn {
	case "", "process_query":
	case "get_stat":
		waiting, running := s.cfg.Scheduler.Load()
		writeJSON(w, http.StatusOK, map[string]any{"ret_code": "succ", "running": running, "waiting": waiting})
		return nil
	default:
		return s.inferflowError(w, start, invalid("header", "header.fn: unknown function %.40q", req.Header.Fn), "error.invalid_request_format")
	}
	if req.Text == "" {
		return s.inferflowError(w, start, invalid("text", "the request has no text"), "error.empty_request")
	}
	a, err := s.startInferflow(r, &req)
	if err != nil {
		return s.inferflowError(w, start, err, inferflowCode(err))
	}
	if req.Streaming || req.StreamingWord {
		return s.streamInferflow(w, r, a, start)
	}
	pieces, err := a.all(r.Context())
	if err != nil {
		return s.inferflowError(w, start, err, inferflowCode(err))
	}
	writeJSON(w, http.StatusOK, inferflowAnswer{"succ", req.Prefix + pieces[0].delta.Content, time.Since(start).Seconds(), true})
	return nil
}

// inferflowCode returns Inferflow's ret_code of an error.
func inferflowCode(err error) string {
	e := failure(err)
	switch {
	case errors.Is(err, scheduler.ErrFull), errors.Is(err, scheduler.ErrWaited), errors.Is(err, scheduler.ErrClosed), errors.Is(err, context.DeadlineExceeded):
		return "error.busy"
	case e.Code != nil && *e.Code == "context_length_exceeded":
		return "error.too_long_request"
	case e.status < 500:
		return "error.invalid_request_format"
	}
	return "error.internal"
}

func (s *Server) inferflowError(w http.ResponseWriter, start time.Time, err error, code string) error {
	e := failure(err)
	if e.status == http.StatusRequestEntityTooLarge {
		code = "error.too_long_request"
	}
	if e.retry > 0 {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, e.status, struct {
		inferflowAnswer
		Message string `json:"message"`
	}{inferflowAnswer{code, "", time.Since(start).Seconds(), true}, e.Message})
	return nil
}

// startInferflow starts the generation of a request.
func (s *Server) startInferflow(r *http.Request, req *inferflowRequest) (*answer, error) {
	prompt, template, err := s.inferflowPrompt(r, req)
	if err != nil {
		return nil, err
	}
	limit := inferflowTokens
	for _, n := range []*int{req.MaxOutput, req.MaxNew} {
		limit = or(n, limit)
	}
	p := sampling{Temperature: req.Temperature, Seed: req.Seed, Strategy: req.DecodingAlg}
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Seed == nil {
		zero := int64(0)
		p.Seed = &zero
	}
	eos := s.cfg.Defaults.EOS
	if template != nil {
		eos = template.Stops(s.cfg.Tokenizer, eos)
	}
	a, err := s.generate(r, &p, generation{ids: prompt.IDs, text: prompt.Text, param: "text", limit: &limit, eos: eos, logprobs: -1})
	if err == nil {
		a.choices[0].reader = s.textReader(prompt.IDs)
	}
	return a, err
}

// clientLimits bound each rendering of a template that a client sends, to about 20 ms
// and a few MB.
var clientLimits = jinja.Limits{Steps: 100_000, Bytes: 1 << 20, Depth: 50}

// inferflowPrompt renders a request with its own template or the model's. If there is
// none, the text is the prompt.
func (s *Server) inferflowPrompt(r *http.Request, req *inferflowRequest) (*chat.Prompt, *chat.Template, error) {
	if req.EncoderInput != "" || s.cfg.Translate != nil {
		return nil, nil, invalid("encoder_input_template", "use /translate for encoder-decoder models")
	}
	template := s.cfg.Template
	if s.cfg.Tokenizer == nil {
		return nil, nil, invalid("text", "%s has no tokenizer; use /v1/completions with token ids", s.cfg.Model)
	}
	if req.DecoderInput != "" {
		if len(req.DecoderInput) > maxTemplate {
			return nil, nil, invalid("decoder_input_template", "decoder_input_template: expected at most %d bytes", maxTemplate)
		}
		var err error
		if template, err = chat.ParseBounded(req.DecoderInput, chat.TokensOf(s.cfg.Tokenizer), clientLimits); err != nil {
			return nil, nil, invalid("decoder_input_template", "%v", err)
		}
	}
	if template == nil {
		ids, err := s.promptIDs(r, "text", promptInput{text: req.Text + req.Prefix})
		return &chat.Prompt{Text: req.Text + req.Prefix, IDs: ids}, nil, err
	}
	var messages []chat.Message
	if req.SystemPrompt != "" {
		messages = append(messages, chat.Message{Role: "system", Content: req.SystemPrompt})
	}
	messages = append(messages, chat.Message{Role: "user", Content: req.Text})
	if req.Prefix != "" {
		messages = append(messages, chat.Message{Role: "assistant", Content: req.Prefix})
	}
	var prompt *chat.Prompt
	err := s.tokenizing(r, "text", len(req.Text)+len(req.Prefix)+len(req.SystemPrompt), func(within tokenizer.Limit) (err error) {
		prompt, err = template.Encode(s.cfg.Tokenizer, messages, chat.RenderOptions{AddGenerationPrompt: req.Prefix == "", ContinueFinal: req.Prefix != "", Limit: within})
		return err
	})
	return prompt, template, err
}

// streamInferflow sends the answer as one JSON object per line, each with at least
// inferflowPiece bytes of text.
func (s *Server) streamInferflow(w http.ResponseWriter, r *http.Request, a *answer, start time.Time) error {
	out := newSender(w, r)
	held := ""
	send := func(code, text string, end bool) error {
		data, err := marshal(inferflowAnswer{code, text, time.Since(start).Seconds(), end})
		if err != nil {
			return err
		}
		if !out.open {
			w.Header().Set("Content-Type", "application/x-ndjson")
			w.WriteHeader(http.StatusOK)
			out.open = true
		}
		out.buf = append(out.buf[:0], data...)
		return out.flush()
	}
	for {
		pieces, err := a.next(r.Context())
		if err != nil && !out.open {
			return s.inferflowError(w, start, err, inferflowCode(err))
		}
		if err != nil {
			send(inferflowCode(err), held, true)
			return errStarted
		}
		for _, p := range pieces {
			held += p.delta.Content
		}
		if len(pieces) == 0 {
			return send("succ", held, true)
		}
		if len(held) >= inferflowPiece {
			if err := send("succ", held, false); err != nil {
				return err
			}
			held = ""
		}
	}
}
