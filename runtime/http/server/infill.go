//go:build unix

package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
)

// infillRequest is the body of /infill, which is llama.cpp's.
type infillRequest struct {
	sampling
	Model     string       `json:"model"`            // name of the served model or of an adapter; may be left out
	Prefix    *string      `json:"input_prefix"`     // text in front of the answer
	Suffix    *string      `json:"input_suffix"`     // text after the answer
	Extra     []infillFile `json:"input_extra"`      // other files or parts of files; if not all fit into the context, the first ones are left out
	Prompt    string       `json:"prompt"`           // more text in front of the answer, after input_prefix
	Predict   *int         `json:"n_predict"`        // maximum number of generated tokens; default and −1: the rest of the context
	MaxTokens *int         `json:"max_tokens"`       // another name of n_predict
	Stream    bool         `json:"stream"`           // send server-sent events, one per token
	Indent    int          `json:"n_indent"`         // end in front of a line with less white space than this; 0: off
	Time      int          `json:"t_max_predict_ms"` // end after this time, once the answer has a line feed; 0 and −1: off
	Samplers  []string     `json:"samplers"`         // no effect: the order of sampling methods is fixed
	Fields    []string     `json:"response_fields"`  // keys to return, with slashes between nested ones; default: all

	unsupported
	withoutEffect
}

// Limits of infill requests.
const (
	maxFiles  = 256
	maxFields = 64
)

// infillAnswer is a response, or the last event of a stream.
type infillAnswer struct {
	infillEvent
	Model      string        `json:"model"`
	Cached     int           `json:"tokens_cached"`
	Truncated  bool          `json:"truncated"` // files were left out
	StopType   string        `json:"stop_type"` // "eos", "limit" or "word"
	StopWord   string        `json:"stopping_word"`
	HasNewLine bool          `json:"has_new_line"`
	Timings    infillTimings `json:"timings"`
}

// infillEvent is an event of a stream.
type infillEvent struct {
	Index     int    `json:"index"`
	Content   string `json:"content"`
	Stop      bool   `json:"stop"`
	Predicted int    `json:"tokens_predicted"`
	Evaluated int    `json:"tokens_evaluated"`
}

type infillTimings struct {
	Prompt    int     `json:"prompt_n"`
	PromptMS  float64 `json:"prompt_ms"`
	PromptTPS float64 `json:"prompt_per_second"`
	Tokens    int     `json:"predicted_n"`
	TokensMS  float64 `json:"predicted_ms"`
	TokensTPS float64 `json:"predicted_per_second"`
}

// An infillForm is llama.cpp's form of an answer.
type infillForm struct {
	*completionRun
	req       *infillRequest
	model     string // its name
	begun     time.Time
	truncated bool
	lines     *lineReader
	newLine   bool
}

// infill answers /infill.
func (s *Server) infill(w http.ResponseWriter, r *http.Request) error {
	begun := time.Now()
	var req infillRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	out := s.newSender(w, r, req.Stream)
	if err := s.checkInfill(r, &req); err != nil {
		return err
	}
	constraint, err := req.constraint()
	if err != nil {
		return err
	}
	prompt, err := s.infillPrompt(r, "input_suffix", *req.Suffix)
	if err != nil {
		return err
	}
	text := *req.Prefix + req.Prompt
	g := generation{
		text: text, param: "input_prefix", limit: req.limit(), eos: req.eos(prompt.stops(s.cfg.Defaults.EOS)), constraint: constraint, logprobs: -1,
	}
	if g.ids, err = prompt.prompt(r, "input_prefix", promptInput{text: text}); err != nil {
		return err
	}
	room := (s.cfg.Context - len(g.ids)) / 2
	if g.limit != nil {
		room = s.cfg.Context - len(g.ids) - *g.limit
	}
	files, truncated, err := prompt.files(r, "input_extra", req.Extra, room)
	if err != nil {
		return err
	}
	g.ids = prompt.insert(g.ids, files)
	run := &completionRun{s: s, req: &completionRequest{sampling: req.sampling, Stream: req.Stream}, prompts: []generation{g}}
	run.form = &infillForm{completionRun: run, req: &req, model: s.modelName(r), begun: begun, truncated: truncated}
	return run.respond(w, r, out)
}

// limit returns the requested maximum of generated tokens, or nil.
func (r *infillRequest) limit() *int {
	n := r.Predict
	if n == nil {
		n = r.MaxTokens
	}
	if n != nil && *n == -1 {
		return nil
	}
	return n
}

func (s *Server) checkInfill(r *http.Request, req *infillRequest) error {
	if err := s.selectModel(r, req.Model); err != nil {
		return err
	}
	if err := refuseUnsupported(req.unsupported); err != nil {
		return err
	}
	switch n := req.limit(); {
	case req.Prefix == nil:
		return invalid("input_prefix", "input_prefix: expected a text; it may be empty")
	case req.Suffix == nil:
		return invalid("input_suffix", "input_suffix: expected a text; it may be empty")
	case len(req.Extra) > maxFiles:
		return invalid("input_extra", "input_extra: expected at most %d files", maxFiles)
	case n != nil && *n < 0:
		return invalid("n_predict", "n_predict: expected 0 or more, or -1 for the rest of the context")
	case req.Indent < 0 || req.Indent > maxTokens:
		return invalid("n_indent", "n_indent: expected a number between 0 and %d", maxTokens)
	case req.Time < -1 || req.Time > maxTokens:
		return invalid("t_max_predict_ms", "t_max_predict_ms: expected a number between -1 and %d", maxTokens)
	case len(req.Fields) > maxFields:
		return invalid("response_fields", "response_fields: expected at most %d keys", maxFields)
	case req.choices() != 1:
		return invalid("n", "n: expected 1")
	}
	for i, f := range req.Extra {
		if len(f.Name) > maxName {
			return invalid("input_extra", "input_extra[%d].filename: expected at most %d bytes", i, maxName)
		}
	}
	if err := req.checkMinTokens(req.limit()); err != nil {
		return err
	}
	return req.check()
}

func (f *infillForm) read(g *generation, c *choice) reader {
	f.lines = &lineReader{reader: f.s.textReader(g.ids), choice: c, indent: f.req.Indent, limit: time.Duration(max(f.req.Time, 0)) * time.Millisecond}
	return f.lines
}

func (f *infillForm) whole(pieces [][]piece) any {
	return f.pick(f.answer(pieces[0][0]))
}

func (f *infillForm) events(_ int, p piece, _ bool) (list []any) {
	f.newLine = f.newLine || strings.Contains(p.delta.Content, "\n")
	if p.delta.Content != "" {
		list = []any{f.event(p.delta.Content)}
	}
	if p.finish != "" {
		list = append(list, f.pick(f.answer(piece{finish: p.finish})))
	}
	return list
}

// end ends a stream without OpenAI's [DONE]; the last event has stop: true.
func (f *infillForm) end(out *sender) error { return out.flush() }

// event returns what all events have.
func (f *infillForm) event(content string) infillEvent {
	return infillEvent{Content: content, Predicted: f.answers[0].generated(), Evaluated: len(f.prompts[0].ids)}
}

// answer returns the response, or the last event of a stream.
func (f *infillForm) answer(p piece) infillAnswer {
	a, now := f.answers[0], time.Now()
	stop := a.choices[0].stop
	out := infillAnswer{
		infillEvent: f.event(p.delta.Content), Model: f.model, Cached: a.cached, Truncated: f.truncated,
		StopType: "eos", StopWord: stop.Word, HasNewLine: f.newLine || strings.Contains(p.delta.Content, "\n"),
	}
	out.Stop = true
	switch {
	case stop.Word != "":
		out.StopType = "word"
	case f.lines.cut || p.finish != scheduler.FinishStop:
		out.StopType = "limit"
	}
	first := f.lines.begun
	if first.IsZero() {
		first = now
	}
	t := &out.Timings
	t.Prompt, t.PromptMS, t.PromptTPS = timing(out.Evaluated-out.Cached, first.Sub(f.begun))
	t.Tokens, t.TokensMS, t.TokensTPS = timing(out.Predicted, now.Sub(first))
	return out
}

// timing returns a number of tokens, their time in milliseconds, and tokens per second.
func timing(n int, d time.Duration) (tokens int, ms, perSecond float64) {
	seconds := max(d.Seconds(), 1e-9)
	return n, seconds * 1000, float64(n) / seconds
}

// pick returns the requested keys of an answer. Those with slashes are nested in it.
func (f *infillForm) pick(a infillAnswer) any {
	data, err := json.Marshal(a)
	all := map[string]any{}
	if f.req.Fields == nil || err != nil || json.Unmarshal(data, &all) != nil {
		return a
	}
	out := map[string]any{}
	for _, path := range f.req.Fields {
		var v any = all
		for key := range strings.SplitSeq(path, "/") {
			inner, _ := v.(map[string]any)
			v = inner[key]
		}
		if v != nil {
			out[path] = v
		}
	}
	return out
}
