//go:build unix

package server

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/iflowc/iflowc/runtime/text/chat"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// completionRequest is the body of /v1/completions.
type completionRequest struct {
	sampling
	Model         string         `json:"model"`          // name of the served model or of an adapter; may be left out
	Prompt        prompts        `json:"prompt"`         // a text, an array of texts, token ids, or an array of arrays of token ids
	Suffix        string         `json:"suffix"`         // text after the answer, for models with tokens for infilling
	MaxTokens     *int           `json:"max_tokens"`     // maximum number of generated tokens; default: the rest of the context
	Stream        bool           `json:"stream"`         // send server-sent events, one per token
	StreamOptions *streamOptions `json:"stream_options"` // options of a stream
	Logprobs      *int           `json:"logprobs"`       // number of most probable tokens to return at each position, with their log-probabilities
	Echo          bool           `json:"echo"`           // return the prompt before the answer; with logprobs also its log-probabilities
	BestOf        *int           `json:"best_of"`        // accepted only as n

	unsupported
	unsupportedText
	withoutEffect
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
		if *p = nil; string(data) != "null" {
			*p = prompts{{text: text}}
		}
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

// completions answers /v1/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) error {
	var req completionRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	out := s.newSender(w, r, req.Stream)
	if err := s.checkCompletion(r, &req); err != nil {
		return err
	}
	run, err := s.completionRun(r, &req)
	if err != nil {
		return err
	}
	return run.respond(w, r, out)
}

// completionRun prepares the generations of a request.
func (s *Server) completionRun(r *http.Request, req *completionRequest) (*completionRun, error) {
	constraint, err := req.constraint()
	if err != nil {
		return nil, err
	}
	limit, eos := req.MaxTokens, s.cfg.Defaults.EOS
	if limit == nil && s.cfg.Defaults.MaxTokens == 0 {
		n := 16 // OpenAI's default
		limit = &n
	}
	var around *infillPrompt
	if req.Suffix != "" {
		if around, err = s.infillPrompt(r, "suffix", req.Suffix); err != nil {
			return nil, err
		}
		eos = around.stops(eos)
	}
	run := &completionRun{s: s, req: req}
	run.form = &openAICompletion{run, completionAnswer{
		ID: newID("cmpl-"), Object: "text_completion", Created: time.Now().Unix(), Model: s.modelName(r), Fingerprint: s.fingerprint(),
	}}
	logprobs := or(req.Logprobs, -1)
	for _, p := range req.Prompt {
		g := generation{text: p.text, param: "prompt", limit: limit, eos: req.eos(eos), constraint: constraint, logprobs: logprobs, echo: req.Echo && logprobs >= 0}
		if around != nil {
			g.ids, err = around.prompt(r, "prompt", p)
		} else {
			g.ids, err = s.promptIDs(r, "prompt", p)
		}
		if err != nil {
			return nil, err
		}
		if _, err := s.limit(g); err != nil {
			return nil, err
		}
		if p.ids != nil && s.cfg.Tokenizer != nil {
			g.text = s.cfg.Tokenizer.Decode(p.ids, false)
		}
		run.prompts = append(run.prompts, g)
	}
	return run, nil
}

func (s *Server) checkCompletion(r *http.Request, req *completionRequest) error {
	if err := s.selectModel(r, req.Model); err != nil {
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
	case req.Suffix != "" && req.Echo:
		return invalid("echo", "echo: expected false beside suffix")
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
