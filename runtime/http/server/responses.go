//go:build unix

package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/text/chat"
)

// responsesRequest is the body of /v1/responses.
type responsesRequest struct {
	sampling
	Model         string             `json:"model"`                // name of the served model or of an adapter; may be left out
	Input         responseItems      `json:"input"`                // a text, or an array of items: messages, function calls and their outputs, reasoning, references to earlier items
	Instructions  *string            `json:"instructions"`         // system message; not kept for later responses
	Previous      string             `json:"previous_response_id"` // id of the stored response that this one continues
	Store         *bool              `json:"store"`                // false: do not store the response; default true
	MaxTokens     *int               `json:"max_output_tokens"`    // maximum number of generated tokens, reasoning included; default: the rest of the context
	Text          *responseText      `json:"text"`                 // format of the answer
	Reasoning     *responseReasoning `json:"reasoning"`            // how the model reasons
	Tools         []json.RawMessage  `json:"tools"`                // functions and custom tools that the model may call; hosted tools are refused
	ToolChoice    json.RawMessage    `json:"tool_choice"`          // "none", "auto", "required", the tool that must be called, or an object of type "allowed_tools"
	Parallel      *bool              `json:"parallel_tool_calls"`  // false: at most one call per answer
	TopLogprobs   int                `json:"top_logprobs"`         // number of most probable tokens to return at each position; needs message.output_text.logprobs in include
	Include       []string           `json:"include"`              // "message.output_text.logprobs" and "reasoning.encrypted_content"; those of hosted tools have no effect
	Stream        bool               `json:"stream"`               // send server-sent events
	StreamOptions *obfuscation       `json:"stream_options"`       // options of a stream
	Metadata      map[string]string  `json:"metadata"`             // returned with the response
	CacheKey      *string            `json:"prompt_cache_key"`     // returned with the response; prefixes are always cached
	Template      variables          `json:"chat_template_kwargs"` // more variables of the chat template

	reasoningKeys
	unsupported
	unsupportedResponses
	withoutEffect
	MaxCalls json.RawMessage `json:"max_tool_calls"` // accepted without effect: it limits hosted tools
}

// obfuscation is stream_options of a response.
type obfuscation struct {
	Include *bool `json:"include_obfuscation"` // accepted without effect: no padding is sent
}

// responseText is the key text of a response.
type responseText struct {
	Format    *textFormat     `json:"format"`    // structured output
	Verbosity json.RawMessage `json:"verbosity"` // refused unless "medium"
}

// textFormat is the format of structured output of a response.
type textFormat struct {
	Type   string          `json:"type"`             // "text", "json_object" or "json_schema"
	Name   string          `json:"name,omitempty"`   // accepted without effect
	Strict *bool           `json:"strict,omitempty"` // accepted without effect: schemas are always enforced
	Schema json.RawMessage `json:"schema,omitempty"` // JSON Schema of the answer
}

// responseReasoning is the key reasoning of a response.
type responseReasoning struct {
	Effort  *string `json:"effort"`           // like reasoning_effort of chat completions
	Summary *string `json:"summary"`          // "auto", "concise" or "detailed": return the reasoning as its summary
	Older   *string `json:"generate_summary"` // older name of summary
}

// unsupportedResponses lists unsupported keys of responses.
type unsupportedResponses struct {
	Background   json.RawMessage `json:"background" neutral:"false" use:"stream"`
	Context      json.RawMessage `json:"context_management" neutral:"[]"`
	Conversation json.RawMessage `json:"conversation" use:"previous_response_id"`
	Prompt       json.RawMessage `json:"prompt" use:"input"`
	Truncation   json.RawMessage `json:"truncation" neutral:"\"disabled\"" use:"a shorter input"`
}

// keys maps keys of the chat request to those of the response.
func (q *responsesRequest) keys() map[string]string {
	names := map[string]string{"messages": "input", "max_tokens": "max_output_tokens", "reasoning_effort": "reasoning.effort"}
	if q.Text != nil && q.Text.Format != nil {
		names["response_format"] = "text.format"
	}
	return names
}

// A responseRun is a started response.
type responseRun struct {
	*chatRun
	req   *responsesRequest
	items []json.RawMessage // the input's items, with those before
	input []json.RawMessage // the input's items
	tools responseTools
	out   *responseObject
}

const responsesPath = "/v1/responses"

// responses answers POST /v1/responses.
func (s *Server) responses(w http.ResponseWriter, r *http.Request) error {
	var req responsesRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	out := s.newSender(w, r, req.Stream)
	run, err := s.startResponse(r, &req)
	if err != nil {
		return renamed(err, req.keys())
	}
	if req.Stream {
		return run.stream(r, out)
	}
	list, finish, err := run.blocks(r.Context(), nil, func() error { return nil })
	if err != nil {
		return err
	}
	for _, b := range list {
		run.out.Output = append(run.out.Output, run.item(b, "completed"))
	}
	run.end(r, finish)
	writeJSON(w, http.StatusOK, run.out)
	return nil
}

// startResponse starts the generation of a response.
func (s *Server) startResponse(r *http.Request, req *responsesRequest) (*responseRun, error) {
	run := &responseRun{req: req}
	c, err := s.responseChat(r, run)
	if err != nil {
		return nil, err
	}
	if run.chatRun, err = s.startChat(r, c); err != nil {
		return nil, err
	}
	run.out = run.object(r)
	return run, nil
}

// responseChat translates a request for a response to one for a chat completion.
func (s *Server) responseChat(r *http.Request, run *responseRun) (*chatRequest, error) {
	req := run.req
	if err := refuseUnsupported(req.unsupported, req.unsupportedResponses); err != nil {
		return nil, err
	}
	if err := req.checkResponse(); err != nil {
		return nil, err
	}
	var messages []chat.Message
	err := s.work(r, func(tick func() error) (err error) {
		if err = s.responseInput(r, run); err == nil {
			messages, err = run.conversation(tick)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c := &chatRequest{
		sampling: req.sampling, Model: req.Model, Messages: messages, MaxTokens: req.MaxTokens, Parallel: req.Parallel, Template: req.Template, reasoningKeys: req.reasoningKeys,
		Logprobs: slices.Contains(req.Include, includeLogprobs), TopLogprobs: req.TopLogprobs,
	}
	if req.Reasoning != nil {
		c.Effort = req.Reasoning.Effort
	}
	run.tools.named = map[string]namedTool{}
	if err := run.tools.read("tools", &responseTool{}, req.Tools); err != nil {
		return nil, err
	}
	c.Tools = run.tools.list
	if c.ToolChoice, err = run.tools.choose(req.ToolChoice); err != nil {
		return nil, err
	}
	return c, req.format(c)
}

// The members of include that have an effect.
const (
	includeLogprobs  = "message.output_text.logprobs"
	includeReasoning = "reasoning.encrypted_content"
)

// Limits of metadata; they are OpenAI's.
const (
	maxMetadata      = 16
	maxMetadataValue = 512
)

// checkResponse validates what the chat request does not contain.
func (q *responsesRequest) checkResponse() error {
	if q.choices() != 1 {
		return invalid("n", "n: a response has one choice")
	}
	if len(q.Metadata) > maxMetadata {
		return invalid("metadata", "metadata: expected at most %d keys", maxMetadata)
	}
	for k, v := range q.Metadata {
		if len(k) > maxRole || len(v) > maxMetadataValue {
			return invalid("metadata", "metadata: expected keys of at most %d and texts of at most %d bytes", maxRole, maxMetadataValue)
		}
	}
	for _, name := range q.Include {
		hosted := slices.ContainsFunc([]string{"file_search_call.", "web_search_call.", "code_interpreter_call.", "computer_call_output.", "message.input_image."}, func(prefix string) bool {
			return strings.HasPrefix(name, prefix)
		})
		if !hosted && name != includeLogprobs && name != includeReasoning {
			return invalid("include", "include: unknown member %.60q; expected %s or %s", name, includeLogprobs, includeReasoning)
		}
	}
	switch {
	case q.TopLogprobs > 0 && !slices.Contains(q.Include, includeLogprobs):
		return invalid("top_logprobs", "top_logprobs needs %s in include", includeLogprobs)
	case len(or(q.CacheKey, "")) > maxUser:
		return invalid("prompt_cache_key", "prompt_cache_key: expected at most %d bytes", maxUser)
	case q.Text != nil && q.Text.Format != nil && len(q.Text.Format.Name) > maxName:
		return invalid("text.format.name", "text.format.name: expected at most %d bytes", maxName)
	case q.Text != nil && !isNeutral(q.Text.Verbosity, `"medium"`):
		return invalid("text.verbosity", "text.verbosity is not supported by this service; leave it out, or write in the instructions how long the answer should be")
	case !slices.Contains([]string{"", "auto", "concise", "detailed"}, q.summary()):
		return invalid("reasoning.summary", "reasoning.summary: expected auto, concise or detailed")
	}
	return nil
}

// summary returns the kind of summary of the reasoning that the request asks for.
func (q *responsesRequest) summary() string {
	if q.Reasoning == nil {
		return ""
	}
	return or(q.Reasoning.Summary, or(q.Reasoning.Older, ""))
}

// format sets the constraint of the answer from text.format.
func (q *responsesRequest) format(c *chatRequest) error {
	if q.Text == nil || q.Text.Format == nil {
		return nil
	}
	if !isNeutral(c.ResponseFormat, "") {
		return invalid("text.format", "text.format and response_format both constrain the answer; leave one out")
	}
	f := q.Text.Format
	data, err := marshal(responseFormat{Type: f.Type, Schema: f.Schema})
	if err != nil {
		return invalid("text.format", "text.format: %v", err)
	}
	c.ResponseFormat = data
	return nil
}

// countInput answers POST /v1/responses/input_tokens.
func (s *Server) countInput(w http.ResponseWriter, r *http.Request) error {
	var req responsesRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	c, err := s.responseChat(r, &responseRun{req: &req})
	if err != nil {
		return renamed(err, req.keys())
	}
	_, prompt, err := s.chatPrompt(r, c)
	if err != nil {
		return renamed(err, req.keys())
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "response.input_tokens", "input_tokens": len(prompt.IDs)})
	return nil
}

// end completes the response and stores it.
func (c *responseRun) end(r *http.Request, finish string) {
	out, now := c.out, time.Now().Unix()
	out.Status = "completed"
	if finish == "length" {
		out.Status, out.Incomplete = "incomplete", &incomplete{"max_output_tokens"}
		if n := len(out.Output); n > 0 {
			out.Output[n-1].Status = out.Status
		}
	} else {
		out.Completed = &now
	}
	if len(out.Output) == 0 {
		out.Output = append(out.Output, c.item(&block{kind: textBlock}, out.Status))
	}
	u := c.answer.usage(c.prompt)
	out.Usage = &responseUsage{Input: u.PromptTokens, InputDetails: *u.Details, Output: u.CompletionTokens, Total: u.TotalTokens}
	out.Usage.OutputDetails.Reasoning = c.answer.reasoning()
	if out.Store {
		c.s.stored.add(callerOf(r).Name, out, c.input, c.items)
	}
}
