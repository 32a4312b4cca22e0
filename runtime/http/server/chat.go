//go:build unix

package server

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/iflowc/iflowc/runtime/text/chat"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// chatRequest is the body of /v1/chat/completions.
type chatRequest struct {
	sampling
	Model         string            `json:"model"`                 // name of the served model or of an adapter; may be left out
	Messages      chatMessages      `json:"messages"`              // the conversation, oldest message first
	MaxTokens     *int              `json:"max_tokens"`            // maximum number of generated tokens; default: the rest of the context
	MaxCompletion *int              `json:"max_completion_tokens"` // OpenAI's newer name of max_tokens
	Stream        bool              `json:"stream"`                // send server-sent events, one per token
	StreamOptions *streamOptions    `json:"stream_options"`        // options of a stream
	Logprobs      bool              `json:"logprobs"`              // return the log-probability of each token
	TopLogprobs   int               `json:"top_logprobs"`          // number of most probable tokens to return at each position, with their log-probabilities
	Tools         []json.RawMessage `json:"tools"`                 // functions that the model may call
	ToolChoice    json.RawMessage   `json:"tool_choice"`           // "none", "auto", "required", the function that must be called, or an object of type "allowed_tools"
	Functions     []json.RawMessage `json:"functions"`             // refused: use tools
	Parallel      *bool             `json:"parallel_tool_calls"`   // false: at most one call per answer

	Template  variables         `json:"chat_template_kwargs"`   // more variables of the chat template
	Effort    *string           `json:"reasoning_effort"`       // "none": no reasoning; other words are the variable of the chat template, or a budget if it has none
	Thinking  *thinking         `json:"thinking"`               // whether, and how much, the model reasons
	Documents []json.RawMessage `json:"documents"`              // documents for the chat template
	Continue  bool              `json:"continue_final_message"` // continue the last message instead of starting a new one
	AddPrompt *bool             `json:"add_generation_prompt"`  // false: leave out the header of the assistant's message

	reasoningKeys
	unsupported
	unsupportedChat
	withoutEffect

	budget int // maximum number of tokens of the reasoning; negative: no limit
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`          // end the stream with a chunk that has the token counts
	Continuous   bool `json:"continuous_usage_stats"` // all other chunks have the token counts so far
}

// ends reports whether the last chunk has the token counts; o may be nil.
func (o *streamOptions) ends() bool { return o != nil && o.IncludeUsage }

// continuous reports whether all other chunks have the token counts; o may be nil.
func (o *streamOptions) continuous() bool { return o != nil && o.Continuous }

// UnmarshalJSON accepts null values, which clients send for unset options.
func (o *streamOptions) UnmarshalJSON(data []byte) error {
	var v struct {
		IncludeUsage *bool `json:"include_usage"`
		Continuous   *bool `json:"continuous_usage_stats"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return invalid("stream_options", "stream_options: expected an object with include_usage and continuous_usage_stats, true or false")
	}
	o.IncludeUsage, o.Continuous = or(v.IncludeUsage, false), or(v.Continuous, false)
	return nil
}

// chatAnswer is a response, or a chunk of a stream.
type chatAnswer struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	Model       string       `json:"model"`
	Fingerprint string       `json:"system_fingerprint"`
	Choices     []chatChoice `json:"choices"`
	Usage       *usage       `json:"usage,omitempty"`
}

type chatChoice struct {
	Index    int           `json:"index"`
	Message  *chatMessage  `json:"message,omitempty"`
	Delta    *chatDelta    `json:"delta,omitempty"`
	Logprobs *chatLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
}

type chatMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

type chatDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

// A toolCall is a function call, or the part of one that a chunk adds.
type toolCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// A chatRun is a started answer to a conversation. All APIs for conversations translate
// their requests to a chatRequest, and write the answer of its chatRun.
type chatRun struct {
	s      *Server
	req    *chatRequest
	model  string // its name
	answer *answer
	prompt int        // tokens of the prompt
	head   chatAnswer // of chat completions
}

// chat answers /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) error {
	var req chatRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	out := s.newSender(w, r, req.Stream)
	run, err := s.startChat(r, &req)
	if err != nil {
		return err
	}
	run.head = chatAnswer{ID: newID("chatcmpl-"), Object: "chat.completion", Created: time.Now().Unix(), Model: run.model, Fingerprint: s.fingerprint()}
	if req.Stream {
		return run.stream(r, out)
	}
	pieces, err := run.answer.all(r.Context())
	if err != nil {
		return err
	}
	for _, p := range pieces {
		run.head.Choices = append(run.head.Choices, run.whole(p))
	}
	run.head.Usage = run.answer.usage(run.prompt)
	writeJSON(w, http.StatusOK, run.head)
	return nil
}

// startChat checks a request and starts its generation.
func (s *Server) startChat(r *http.Request, req *chatRequest) (*chatRun, error) {
	choice, prompt, err := s.chatPrompt(r, req)
	if err != nil {
		return nil, err
	}
	constraint, err := responseConstraint(req, choice)
	if err != nil {
		return nil, err
	}
	limit := req.limit()
	eos := req.eos(s.cfg.Template.Stops(s.cfg.Tokenizer, s.cfg.Defaults.EOS))
	logprobs := -1
	if req.Logprobs {
		logprobs = req.TopLogprobs
	}
	g := generation{ids: prompt.IDs, text: prompt.Text, param: "messages", limit: limit, eos: eos, constraint: constraint, logprobs: logprobs}
	if constraint == nil || req.afterReasoning(constraint, s.cfg.Template) {
		g.reasoning = s.reasoning(req, prompt.IDs, choice.tools, constraint != nil, eos)
	}
	a, err := s.generate(r, &req.sampling, g)
	if err != nil {
		return nil, err
	}
	for _, c := range a.choices {
		c.single = !or(req.Parallel, true)
		c.reader = s.cfg.Template.NewReader(s.cfg.Tokenizer, prompt.IDs, chat.ReaderOptions{Tools: len(choice.tools) > 0, Forced: len(choice.forced) > 0, Schemas: choice.tools, Reasoning: true})
	}
	return &chatRun{s: s, req: req, model: s.modelName(r), answer: a, prompt: len(prompt.IDs)}, nil
}

// afterReasoning reports whether a constraint begins after the reasoning. Constraints by
// other keys than response_format are those of all that the model writes.
func (r *chatRequest) afterReasoning(c *Constraint, t *chat.Template) bool {
	if c.Kind == "tool" {
		return !t.CallsWhileReasoning()
	}
	return !isNeutral(r.ResponseFormat, "")
}

// chatPrompt checks a request and renders its prompt.
func (s *Server) chatPrompt(r *http.Request, req *chatRequest) (choice toolUse, prompt *chat.Prompt, err error) {
	if err = s.checkChat(r, req); err != nil {
		return choice, nil, err
	}
	if err = s.reason(req); err != nil {
		return choice, nil, err
	}
	if choice, err = s.toolChoice(req); err != nil {
		return choice, nil, err
	}
	err = s.tokenizing(r, "messages", textBytes(req.Messages), func(within tokenizer.Limit) (err error) {
		prompt, err = s.render(req.Messages, chat.RenderOptions{
			Tools: choice.tools, Documents: req.Documents, AddGenerationPrompt: or(req.AddPrompt, !req.Continue), ContinueFinal: req.Continue, Variables: req.Template, Limit: within,
		})
		return err
	})
	return choice, prompt, err
}

// render renders messages with the chat template.
func (s *Server) render(messages []chat.Message, opt chat.RenderOptions) (*chat.Prompt, error) {
	messages, opt, err := s.cfg.Template.DescribeTools(s.cfg.Template.KnownRoles(messages), opt)
	if err != nil {
		return nil, err
	}
	return s.cfg.Template.Encode(s.cfg.Tokenizer, messages, opt)
}

func (s *Server) checkChat(r *http.Request, req *chatRequest) error {
	if err := s.selectModel(r, req.Model); err != nil {
		return err
	}
	if err := refuseUnsupported(req.unsupported, req.unsupportedChat); err != nil {
		return err
	}
	switch {
	case s.cfg.Template == nil || s.cfg.Tokenizer == nil:
		return invalid("", "%s has no chat template; use /v1/completions", s.cfg.Model)
	case req.TopLogprobs < 0 || req.TopLogprobs > maxRanked:
		return invalid("top_logprobs", "top_logprobs: expected a number between 0 and %d", maxRanked)
	case req.TopLogprobs > 0 && !req.Logprobs:
		return invalid("top_logprobs", "top_logprobs needs logprobs: true")
	case req.StreamOptions != nil && !req.Stream:
		return invalid("stream_options", "stream_options needs stream: true")
	case len(req.Functions) > 0:
		return invalid("functions", "functions is no longer supported; use tools")
	case len(or(req.Effort, "")) > maxRole:
		return invalid("reasoning_effort", "reasoning_effort: expected at most %d bytes", maxRole)
	case len(req.Documents) > maxMessages:
		return invalid("documents", "documents: expected at most %d documents", maxMessages)
	}
	if err := checkMessages(req.Messages); err != nil {
		return err
	}
	if err := req.checkMinTokens(req.limit()); err != nil {
		return err
	}
	return req.check()
}

// limit returns the requested maximum of generated tokens, or nil.
func (r *chatRequest) limit() *int {
	if r.MaxCompletion != nil {
		return r.MaxCompletion
	}
	return r.MaxTokens
}

// whole returns a finished choice.
func (c *chatRun) whole(p piece) chatChoice {
	m := &chatMessage{Role: "assistant", Reasoning: p.delta.Reasoning, Calls: joinCalls(p.delta.Calls)}
	if p.delta.Content != "" || len(m.Calls) == 0 {
		m.Content = &p.delta.Content
	}
	out := chatChoice{Index: p.index, Message: m, Finish: &p.finish}
	if c.req.Logprobs {
		out.Logprobs = c.s.chatLogprobs(p.events)
	}
	return out
}

// joinCalls joins the deltas of tool calls.
func joinCalls(deltas []chat.CallDelta) (calls []toolCall) {
	for _, d := range deltas {
		for d.Index >= len(calls) {
			calls = append(calls, toolCall{Type: "function"})
		}
		c := &calls[d.Index]
		if d.ID != "" {
			c.ID, c.Function.Name = d.ID, d.Name
		}
		c.Function.Arguments += d.Arguments
	}
	return calls
}

// stream sends the answer as server-sent events.
func (c *chatRun) stream(r *http.Request, out *sender) error {
	c.head.Object = "chat.completion.chunk"
	empty := ""
	for i := range c.answer.choices {
		if err := c.add(out, 0, chatChoice{Index: i, Delta: &chatDelta{Role: "assistant", Content: &empty}}); err != nil {
			return err
		}
	}
	out.admitted()
	for {
		pieces, err := c.answer.next(r.Context())
		if err != nil {
			return err
		}
		if len(pieces) == 0 {
			break
		}
		for _, p := range pieces {
			if err := c.addPiece(out, p); err != nil {
				return err
			}
		}
		if err := out.flush(); err != nil {
			return err
		}
	}
	if c.req.StreamOptions.ends() {
		last := c.head
		last.Choices, last.Usage = []chatChoice{}, c.answer.usage(c.prompt)
		if err := out.add(last); err != nil {
			return err
		}
	}
	return out.done()
}

// add adds an event for a part of a choice, after so many generated tokens.
func (c *chatRun) add(out *sender, generated int, choice chatChoice) error {
	chunk := c.head
	chunk.Choices = []chatChoice{choice}
	if c.req.StreamOptions.continuous() {
		chunk.Usage = c.answer.usageAfter(c.prompt, generated)
	}
	return out.add(chunk)
}

// addPiece adds an event for a piece, and another one at the end of a choice.
func (c *chatRun) addPiece(out *sender, p piece) error {
	choice := chatChoice{Index: p.index, Delta: &chatDelta{Reasoning: p.delta.Reasoning}}
	if p.delta.Content != "" {
		choice.Delta.Content = &p.delta.Content
	}
	for _, d := range p.delta.Calls {
		call := toolCall{Index: &d.Index, ID: d.ID, Function: toolFunction{Name: d.Name, Arguments: d.Arguments}}
		if d.ID != "" {
			call.Type = "function"
		}
		choice.Delta.Calls = append(choice.Delta.Calls, call)
	}
	if c.req.Logprobs && len(p.events) > 0 {
		choice.Logprobs = c.s.chatLogprobs(p.events)
	}
	if p.delta.Content != "" || p.delta.Reasoning != "" || len(p.delta.Calls) > 0 || choice.Logprobs != nil {
		if err := c.add(out, p.generated, choice); err != nil {
			return err
		}
	}
	if p.finish == "" {
		return nil
	}
	return c.add(out, p.generated, chatChoice{Index: p.index, Delta: &chatDelta{}, Finish: &p.finish})
}
