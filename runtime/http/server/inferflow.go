//go:build unix

package server

import (
	"encoding/json"
	"net/http"

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

// inferflowPath reports whether a request is Inferflow's.
func inferflowPath(r *http.Request) bool {
	return r.Method == http.MethodPost && (r.URL.Path == "/" || r.URL.Path == "/inferflow")
}

// inferflow answers Inferflow requests.
func (s *Server) inferflow(w http.ResponseWriter, r *http.Request) error {
	var req inferflowRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	switch req.Header.Fn {
	case "", "process_query":
	case "get_stat":
		waiting, running := s.cfg.Scheduler.Load()
		writeJSON(w, http.StatusOK, map[string]any{"ret_code": "succ", "running": running, "waiting": waiting})
		return nil
	default:
		return invalid("header", "header.fn: unknown function %.40q", req.Header.Fn)
	}
	if req.Text == "" {
		return invalid("text", "the request has no text").withCode(emptyRequest)
	}
	streams := req.Streaming || req.StreamingWord
	out := s.newSender(w, r, streams)
	a, err := s.startInferflow(r, &req)
	if err != nil {
		return err
	}
	if streams {
		return streamInferflow(r, a, out)
	}
	pieces, err := a.all(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, inferflowPart(r, req.Prefix+pieces[0].delta.Content, true))
	return nil
}

// inferflowPart returns an answer, or a part of a stream.
func inferflowPart(r *http.Request, text string, end bool) inferflowAnswer {
	return inferflowAnswer{"succ", text, elapsed(r).Seconds(), end}
}

// emptyRequest is the code of the error of a request without text.
const emptyRequest = "empty_request"

// inferflowCode returns Inferflow's ret_code of an error.
func inferflowCode(e *apiError) string {
	switch code := or(e.Code, ""); {
	case e.retry > 0:
		return "error.busy"
	case code == emptyRequest:
		return "error.empty_request"
	case code == "context_length_exceeded", e.status == http.StatusRequestEntityTooLarge:
		return "error.too_long_request"
	case e.status < 500:
		return "error.invalid_request_format"
	}
	return "error.internal"
}

// inferflowError returns the function that formats errors of a request as Inferflow
// does.
func inferflowError(r *http.Request) func(e *apiError) (event string, body any) {
	return func(e *apiError) (string, any) {
		return "", struct {
			inferflowAnswer
			Message string `json:"message"`
		}{inferflowAnswer{inferflowCode(e), "", elapsed(r).Seconds(), true}, e.Message}
	}
}

// startInferflow starts the generation of a request.
func (s *Server) startInferflow(r *http.Request, req *inferflowRequest) (*answer, error) {
	prompt, eos, err := s.inferflowPrompt(r, req)
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
	a, err := s.generate(r, &p, generation{ids: prompt.IDs, text: prompt.Text, param: "text", limit: &limit, eos: eos, logprobs: -1})
	if err == nil {
		a.choices[0].reader = s.textReader(prompt.IDs)
	}
	return a, err
}

// clientLimits bound each rendering of a template that a client sends, to about 20 ms
// and a few MB.
var clientLimits = jinja.Limits{Steps: 100_000, Bytes: 1 << 20, Depth: 50}

// inferflowPrompt renders a request with its own template or the model's, and returns the
// tokens that end the answer. If there is no template, the text is the prompt.
func (s *Server) inferflowPrompt(r *http.Request, req *inferflowRequest) (prompt *chat.Prompt, eos []int32, err error) {
	eos = s.cfg.Defaults.EOS
	if req.EncoderInput != "" || s.cfg.Translate != nil {
		return nil, nil, invalid("encoder_input_template", "use /translate for encoder-decoder models")
	}
	if s.cfg.Tokenizer == nil {
		return nil, nil, invalid("text", "%s has no tokenizer; use /v1/completions with token ids", s.cfg.Model)
	}
	if len(req.DecoderInput) > maxTemplate {
		return nil, nil, invalid("decoder_input_template", "decoder_input_template: expected at most %d bytes", maxTemplate)
	}
	if req.DecoderInput == "" && s.cfg.Template == nil {
		ids, err := s.promptIDs(r, "text", promptInput{text: req.Text + req.Prefix})
		return &chat.Prompt{Text: req.Text + req.Prefix, IDs: ids}, eos, err
	}
	var messages []chat.Message
	if req.SystemPrompt != "" {
		messages = append(messages, chat.Message{Role: "system", Content: req.SystemPrompt})
	}
	messages = append(messages, chat.Message{Role: "user", Content: req.Text})
	if req.Prefix != "" {
		messages = append(messages, chat.Message{Role: "assistant", Content: req.Prefix})
	}
	err = s.tokenizing(r, "text", len(req.Text)+len(req.Prefix)+len(req.SystemPrompt), func(within tokenizer.Limit) (err error) {
		template := s.cfg.Template
		if req.DecoderInput != "" {
			limits := clientLimits
			limits.Tick = within.Tick
			if template, err = chat.ParseBounded(req.DecoderInput, chat.TokensOf(s.cfg.Tokenizer), limits); err != nil {
				return invalid("decoder_input_template", "%v", err)
			}
		}
		eos = template.Stops(s.cfg.Tokenizer, eos)
		prompt, err = template.Encode(s.cfg.Tokenizer, messages, chat.RenderOptions{AddGenerationPrompt: req.Prefix == "", ContinueFinal: req.Prefix != "", Limit: within})
		return err
	})
	return prompt, eos, err
}

// streamInferflow sends the answer as one JSON object per line, each with at least
// inferflowPiece bytes of text.
func streamInferflow(r *http.Request, a *answer, out *sender) error {
	out.admitted()
	held := ""
	send := func(end bool) error {
		if err := out.add(inferflowPart(r, held, end)); err != nil {
			return err
		}
		held = ""
		return out.flush()
	}
	for {
		pieces, err := a.next(r.Context())
		if err != nil {
			if held != "" {
				send(false) // the error follows
			}
			return err
		}
		for _, p := range pieces {
			held += p.delta.Content
		}
		if len(pieces) == 0 {
			return send(true)
		}
		if len(held) >= inferflowPiece {
			if err := send(false); err != nil {
				return err
			}
		}
	}
}
