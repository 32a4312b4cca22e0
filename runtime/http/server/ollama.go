//go:build unix

package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/chat"
)

// ollamaCommon holds the keys of both kinds of Ollama's requests.
type ollamaCommon struct {
	Model     string          `json:"model"`        // name of the served model or of an adapter; may be left out
	Options   ollamaOptions   `json:"options"`      // sampling
	Format    json.RawMessage `json:"format"`       // "json", or the JSON Schema of the answer
	Stream    *bool           `json:"stream"`       // false: one object; default: a line of JSON per token
	Think     json.RawMessage `json:"think"`        // true or false: variable enable_thinking of the chat template; "low", "medium" or "high": also reasoning_effort
	KeepAlive json.RawMessage `json:"keep_alive"`   // accepted without effect: the model stays loaded
	Logprobs  bool            `json:"logprobs"`     // return the log-probability of each token
	Top       int             `json:"top_logprobs"` // number of most probable tokens to return at each position, with their log-probabilities
}

// ollamaOptions are the options of Ollama's requests. Those that place the model on
// devices have no effect.
type ollamaOptions struct {
	Temperature *float64 `json:"temperature"`       // softmax temperature; 0: greedy decoding; default 0.8, or the model's own
	TopK        *int     `json:"top_k"`             // keep the K most probable tokens; 0 or -1: all
	TopP        *float64 `json:"top_p"`             // nucleus sampling: keep the most probable tokens whose probabilities add up to this
	MinP        *float64 `json:"min_p"`             // keep tokens at least this times as probable as the most probable one
	TypicalP    *float64 `json:"typical_p"`         // locally typical sampling: probability mass to keep; 0 or 1: off
	TfsZ        float64  `json:"tfs_z"`             // tail-free sampling parameter z; 0: off
	Mirostat    int      `json:"mirostat"`          // Mirostat version, 1 or 2; 0: off
	MirostatTau *float64 `json:"mirostat_tau"`      // Mirostat target surprise, in bits
	MirostatEta *float64 `json:"mirostat_eta"`      // Mirostat learning rate
	Repeat      *float64 `json:"repeat_penalty"`    // divides positive and multiplies negative logits of tokens in the text
	RepeatLast  *int     `json:"repeat_last_n"`     // number of last tokens that the penalties count; 0: no penalty; -1: all; default 64
	Frequency   float64  `json:"frequency_penalty"` // subtracted from a logit for each time the token was generated
	Presence    float64  `json:"presence_penalty"`  // subtracted from the logits of tokens that were generated
	Seed        *int64   `json:"seed"`              // seed of the random numbers; default: a random one per request
	Stop        stops    `json:"stop"`              // generation ends before one of these texts
	Predict     *int     `json:"num_predict"`       // maximum number of generated tokens; 0 or negative: the rest of the context
	Context     *int     `json:"num_ctx"`           // no effect: the context is the service's; a warning if it is more
	Newlines    *bool    `json:"penalize_newline"`  // no effect: penalties count all tokens; a warning if it is false
	Keep        any      `json:"num_keep"`          // accepted without effect: the context never shifts
	Batch       any      `json:"num_batch"`         // accepted without effect
	GPUs        any      `json:"num_gpu"`           // accepted without effect
	MainGPU     any      `json:"main_gpu"`          // accepted without effect
	Threads     any      `json:"num_thread"`        // accepted without effect
	Mmap        any      `json:"use_mmap"`          // accepted without effect
	Mlock       any      `json:"use_mlock"`         // accepted without effect
	NUMA        any      `json:"numa"`              // accepted without effect
	LowVRAM     any      `json:"low_vram"`          // accepted without effect
}

// streams reports whether the answer is a stream.
func (q *ollamaCommon) streams() bool { return or(q.Stream, true) }

// ollamaWindow is Ollama's default of repeat_last_n.
const ollamaWindow = 64

// sampling returns the options as those of other APIs.
func (o *ollamaOptions) sampling(d *Defaults) sampling {
	last := o.RepeatLast
	if last == nil && (d.PenaltyWindow == 0 || d.OwnPenalty) && (o.Repeat != nil || o.Frequency != 0 || o.Presence != 0) {
		last = new(ollamaWindow)
	}
	return sampling{
		Temperature: o.Temperature, TopK: o.TopK, TopP: o.TopP, MinP: o.MinP, TypicalP: o.TypicalP, TfsZ: o.TfsZ,
		Mirostat: o.Mirostat, MirostatTau: o.MirostatTau, MirostatEta: o.MirostatEta, RepeatPenalty: o.Repeat, RepeatLastN: last,
		FrequencyPenalty: o.Frequency, PresencePenalty: o.Presence, Seed: o.Seed, Stop: o.Stop,
	}
}

// ollamaChatRequest is the body of /api/chat.
type ollamaChatRequest struct {
	ollamaCommon
	Messages []json.RawMessage `json:"messages"` // the conversation, oldest message first; none: load the model, without effect
	Tools    []json.RawMessage `json:"tools"`    // functions that the model may call
	Truncate *bool             `json:"truncate"` // false: refuse a conversation that exceeds the context; default: drop its oldest messages, but not the system's
}

// An ollamaMessage is a message of Ollama's chat.
type ollamaMessage struct {
	Role     string            `json:"role"`         // "system", "user", "assistant" or "tool"
	Content  string            `json:"content"`      // the text
	Thinking string            `json:"thinking"`     // reasoning of the assistant
	Images   []json.RawMessage `json:"images"`       // refused in the newest message of the user, left out elsewhere: models read text only
	Calls    []json.RawMessage `json:"tool_calls"`   // tool calls of the assistant
	ToolName string            `json:"tool_name"`    // name of the function whose result a tool message contains
	CallID   string            `json:"tool_call_id"` // id of the call that a tool message answers
}

// An ollamaCall is a tool call; its arguments are an object.
type ollamaCall struct {
	ID       string `json:"id,omitempty"` // id of the call
	Function struct {
		Index     int             `json:"index"`     // accepted without effect
		Name      string          `json:"name"`      // name of the function
		Arguments json.RawMessage `json:"arguments"` // object with the arguments
	} `json:"function"` // the function and its arguments
}

// ollamaKeys maps keys of a chat or completion request to Ollama's.
var ollamaKeys = map[string]string{"max_tokens": "num_predict", "guided_json": "format", "reasoning_effort": "think"}

// ollamaChat answers POST /api/chat.
func (s *Server) ollamaChat(w http.ResponseWriter, r *http.Request) error {
	var req ollamaChatRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	if err := checkCount(len(req.Messages)); err != nil {
		return err
	}
	var c conversation
	if err := s.work(r, func(tick func() error) error {
		c.tick = tick
		for i, data := range req.Messages {
			if err := c.add("messages", fmt.Sprintf("messages[%d]", i), data, &ollamaMessage{}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	set := func(a *ollamaAnswer, text, reasoning string, calls []ollamaCall) {
		a.Message = &ollamaAnswerMessage{Role: "assistant", Content: text, Thinking: reasoning, Calls: calls}
	}
	if len(req.Messages) == 0 {
		return s.ollamaLoad(w, r, &req.ollamaCommon, set)
	}
	list, err := c.list()
	if err != nil {
		return err
	}
	return s.ollamaAnswer(w, r, &req.ollamaCommon, &chatRequest{Messages: list, Tools: req.Tools}, or(req.Truncate, true), set)
}

// ollamaLoad answers a request to load the model, which is always loaded: one without
// messages or prompt.
func (s *Server) ollamaLoad(w http.ResponseWriter, r *http.Request, q *ollamaCommon, set ollamaSet) error {
	if err := s.selectModel(r, q.Model); err != nil {
		return err
	}
	loaded := (&ollamaWriter{s: s, req: q, request: r}).answer()
	loaded.Done, loaded.Reason = true, "load"
	set(loaded, "", "", nil)
	writeJSON(w, http.StatusOK, loaded)
	return nil
}

// read adds a message to a conversation.
func (m *ollamaMessage) read(c *conversation) error {
	text := m.Content
	for range len(m.Images) {
		text = strings.TrimPrefix(text+"\n"+c.omit(m.Role, "image", ".images: this service reads text only"), "\n")
	}
	next := chat.Message{Role: m.Role, Content: text, Name: m.ToolName, ToolCallID: m.CallID}
	if m.Thinking != "" {
		next.Extra = reasoningField(m.Thinking)
	}
	for i, data := range m.Calls {
		var call ollamaCall
		if err := json.Unmarshal(data, &call); err != nil {
			return fmt.Errorf(".tool_calls[%d]%w", i, inside(err))
		}
		f := &call.Function
		arguments, ok := objectOf(f.Arguments)
		if !ok {
			return fmt.Errorf(".tool_calls[%d].function.arguments: expected an object", i)
		}
		next.ToolCalls = append(next.ToolCalls, chat.ToolCall{ID: call.ID, Type: "function", Function: chat.Function{Name: f.Name, Arguments: arguments}})
	}
	c.push(next)
	return checkShort("tool_name", m.ToolName)
}

// fill sets the parts of a chat request that both kinds of requests have.
func (q *ollamaCommon) fill(s *Server, r *http.Request, c *chatRequest) error {
	q.check(s, r)
	c.sampling, c.Model, c.MaxTokens, c.Logprobs, c.TopLogprobs = q.Options.sampling(&s.cfg.Defaults), q.Model, q.limit(), q.Logprobs, q.Top
	var on bool
	var effort string
	switch {
	case isNeutral(q.Think, `""`):
	case json.Unmarshal(q.Think, &on) == nil:
		c.Thinking = &thinking{Type: "disabled"}
		if on {
			c.Thinking.Type = "enabled"
		}
	case json.Unmarshal(q.Think, &effort) == nil:
		c.Effort = &effort
	default:
		return invalid("think", "think: expected true, false, or \"low\", \"medium\" or \"high\"")
	}
	return q.constrain(&c.sampling)
}

// check warns of options that have no effect.
func (q *ollamaCommon) check(s *Server, r *http.Request) {
	o := &q.Options
	if n := or(o.Context, 0); n > s.cfg.Context {
		warn(r, fmt.Sprintf("num_ctx: %d was lowered to the service's context, %d tokens", n, s.cfg.Context))
	}
	if !or(o.Newlines, true) {
		warn(r, "penalize_newline: penalties count all tokens, so false was ignored")
	}
}

// limit returns the maximum number of generated tokens, or nil.
func (q *ollamaCommon) limit() *int {
	if n := q.Options.Predict; n != nil && *n > 0 {
		return n
	}
	return nil
}

// constrain sets the constraint of the answer from format. As in Ollama's API, it is
// that of the whole answer, also where there are tools.
func (q *ollamaCommon) constrain(p *sampling) error {
	if isNeutral(q.Format, `""`) {
		return nil
	}
	p.GuidedJSON = q.Format
	var word string
	if json.Unmarshal(q.Format, &word) == nil {
		if word != "json" {
			return invalid("format", "format: expected \"json\" or a JSON Schema")
		}
		p.GuidedJSON = anyObject
	}
	return nil
}
