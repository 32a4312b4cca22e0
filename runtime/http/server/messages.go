//go:build unix

package server

import (
	"encoding/json"
	"net/http"
	"strings"
)

// messagesRequest is the body of /v1/messages and /v1/messages/count_tokens.
type messagesRequest struct {
	sampling
	Model         string             `json:"model"`                // name of the served model or of an adapter; may be left out
	Messages      []json.RawMessage  `json:"messages"`             // the conversation, oldest message first
	System        json.RawMessage    `json:"system"`               // system message: a text or blocks of type text
	MaxTokens     *int               `json:"max_tokens"`           // maximum number of generated tokens, reasoning included
	StopSequences stops              `json:"stop_sequences"`       // generation ends before one of these texts
	Tools         []json.RawMessage  `json:"tools"`                // tools that the model may call
	ToolChoice    *messageToolChoice `json:"tool_choice"`          // which tools the model may call
	Thinking      *thinking          `json:"thinking"`             // whether the model reasons; without it, it does not
	Output        *messageOutput     `json:"output_config"`        // structured output and effort
	Format        *messageFormat     `json:"output_format"`        // older name of output_config.format
	Stream        bool               `json:"stream"`               // send server-sent events
	Metadata      messageMetadata    `json:"metadata"`             // metadata of the request
	CacheControl  json.RawMessage    `json:"cache_control"`        // accepted without effect: prefixes are always cached
	Region        json.RawMessage    `json:"inference_geo"`        // accepted without effect
	Template      variables          `json:"chat_template_kwargs"` // more variables of the chat template

	reasoningKeys
	unsupported
	unsupportedMessages
	withoutEffect
}

type messageMetadata struct {
	User *string `json:"user_id"` // end user of the client; the client's fair share is divided among its users
}

// thinking is the key thinking of messages and chat completions.
type thinking struct {
	Type    string  `json:"type"`          // "enabled" or "adaptive": the model may reason; "disabled": it does not
	Budget  *int    `json:"budget_tokens"` // maximum number of tokens of reasoning, after which the answer begins
	Display *string `json:"display"`       // accepted without effect: reasoning is returned in full
}

// messageOutput is the key output_config of a message.
type messageOutput struct {
	Effort *string        `json:"effort"` // variable reasoning_effort of the chat template
	Format *messageFormat `json:"format"` // structured output
}

// messageFormat is the format of structured output.
type messageFormat struct {
	Type   string          `json:"type"`   // "json_schema"
	Schema json.RawMessage `json:"schema"` // JSON Schema of the answer
}

// messageToolChoice is the key tool_choice of a message.
type messageToolChoice struct {
	Type   string `json:"type"`                      // "auto", "any", "tool" or "none"
	Name   string `json:"name"`                      // of "tool": the tool that must be called
	Single bool   `json:"disable_parallel_tool_use"` // true: at most one call per answer
}

// A messageTool is a tool of a message.
type messageTool struct {
	Type        string          `json:"type"`         // "custom" or nothing; Anthropic's own tools are refused
	Name        string          `json:"name"`         // name of the tool
	Description string          `json:"description"`  // what the tool does
	Schema      json.RawMessage `json:"input_schema"` // JSON Schema of the input
	Strict      *bool           `json:"strict"`       // true: refuse a schema that cannot be enforced
}

// unsupportedMessages lists unsupported keys of messages.
type unsupportedMessages struct {
	Container json.RawMessage `json:"container"`
	Context   json.RawMessage `json:"context_management" neutral:"{}|{\"edits\":[]}|{\"edits\":[{\"type\":\"clear_thinking_20251015\",\"keep\":\"all\"}]}"`
	Servers   json.RawMessage `json:"mcp_servers" neutral:"[]"`
}

// keys maps keys of the chat request to those of the message.
func (q *messagesRequest) keys() map[string]string {
	names := map[string]string{"reasoning_effort": "output_config.effort"}
	if q.Metadata.User != nil {
		names["user"] = "metadata.user_id"
	}
	if q.StopSequences != nil {
		names["stop"] = "stop_sequences"
	}
	if q.Format != nil || q.Output != nil {
		names["response_format"] = "output_config.format"
	}
	return names
}

// A messageRun is a started message.
type messageRun struct {
	*chatRun
	req *messagesRequest
	id  string
}

// messagesPath reports whether a request is one of Anthropic's API.
func messagesPath(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/messages") }

// messages answers POST /v1/messages.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) error {
	var req messagesRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	if req.MaxTokens == nil {
		return invalid("max_tokens", "max_tokens: expected the maximum number of generated tokens")
	}
	out := s.newSender(w, r, req.Stream)
	c, err := s.messagesChat(r, &req)
	if err != nil {
		return err
	}
	run := &messageRun{req: &req, id: newID("msg_")}
	if run.chatRun, err = s.startChat(r, c); err != nil {
		return renamed(err, req.keys())
	}
	if req.Stream {
		return run.stream(r, out)
	}
	list, finish, err := run.blocks(r.Context(), nil, func() error { return nil })
	if err != nil {
		return err
	}
	m := run.object()
	for _, b := range list {
		m.Content = append(m.Content, run.content(b))
	}
	m.StopReason, m.StopSequence = run.stopReason(finish)
	m.Usage = run.messageUsage()
	writeJSON(w, http.StatusOK, m)
	return nil
}

// countMessages answers POST /v1/messages/count_tokens.
func (s *Server) countMessages(w http.ResponseWriter, r *http.Request) error {
	var req messagesRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	c, err := s.messagesChat(r, &req)
	if err != nil {
		return err
	}
	_, prompt, err := s.chatPrompt(r, c)
	if err != nil {
		return renamed(err, req.keys())
	}
	writeJSON(w, http.StatusOK, map[string]int{"input_tokens": len(prompt.IDs)})
	return nil
}

// messagesChat translates a request within its client's CPU time.
func (s *Server) messagesChat(r *http.Request, q *messagesRequest) (c *chatRequest, err error) {
	err = s.work(r, func(tick func() error) (err error) {
		c, err = q.chat(tick)
		return err
	})
	return c, err
}

// chat translates the request to one for a chat completion.
func (q *messagesRequest) chat(tick func() error) (*chatRequest, error) {
	if err := refuseUnsupported(q.unsupported, q.unsupportedMessages); err != nil {
		return nil, err
	}
	if q.choices() != 1 {
		return nil, invalid("n", "n: a message has one choice")
	}
	if len(q.StopSequences) > 0 && len(q.Stop) > 0 {
		return nil, invalid("stop_sequences", "stop_sequences and stop are the same; leave one out")
	}
	messages, err := q.conversation(tick)
	if err != nil {
		return nil, err
	}
	c := &chatRequest{sampling: q.sampling, Model: q.Model, Messages: messages, MaxTokens: q.MaxTokens, Template: q.Template}
	if n := len(messages); n > 0 && messages[n-1].Role == "assistant" && messages[n-1].Content != nil && len(messages[n-1].ToolCalls) == 0 {
		c.Continue = true
	}
	if len(q.StopSequences) > 0 {
		c.Stop = q.StopSequences
	}
	if q.Metadata.User != nil && c.User == "" {
		c.User = *q.Metadata.User
	}
	q.think(c)
	if err := q.format(c); err != nil {
		return nil, err
	}
	return c, q.tools(c)
}

// think copies what a message says of reasoning. Without the key thinking the template
// begins none, whatever the effort.
func (q *messagesRequest) think(c *chatRequest) {
	c.Thinking, c.reasoningKeys = q.Thinking, q.reasoningKeys
	if q.Output != nil {
		c.Effort = q.Output.Effort
	}
	if c.Thinking == nil {
		c.Template = c.Template.reasoning(false)
	}
}

// format sets the constraint of the answer.
func (q *messagesRequest) format(c *chatRequest) error {
	f := q.Format
	if q.Output != nil && q.Output.Format != nil {
		f = q.Output.Format
	}
	if f == nil {
		return nil
	}
	if f.Type != "json_schema" || !isNeutral(c.ResponseFormat, "") {
		return invalid("output_config.format", "output_config.format: expected the type json_schema, and no response_format beside it")
	}
	data, err := marshal(responseFormat{Type: f.Type, Schema: f.Schema})
	c.ResponseFormat = data
	return err
}

// tools sets the tools.
func (q *messagesRequest) tools(c *chatRequest) error {
	if len(q.Tools) > maxTools {
		return invalid("tools", "tools: expected at most %d", maxTools)
	}
	for i, data := range q.Tools {
		var t messageTool
		if err := json.Unmarshal(data, &t); err != nil {
			return invalid("tools", "tools[%d]%v", i, inside(err))
		}
		if t.Type != "" && t.Type != "custom" {
			return invalid("tools", "tools[%d]: tools of type %.40q are Anthropic's own and are not supported; send tools with a name and an input_schema", i, t.Type)
		}
		if err := checkName("name", t.Name); err != nil {
			return invalid("tools", "tools[%d]%v", i, err)
		}
		c.Tools = append(c.Tools, chatTool(t.Name, t.Description, t.Schema, or(t.Strict, false)))
	}
	choice := q.ToolChoice
	if choice == nil {
		return nil
	}
	parallel := !choice.Single
	c.Parallel = &parallel
	switch choice.Type {
	case "auto", "none":
		c.ToolChoice = json.RawMessage(`"` + choice.Type + `"`)
	case "any":
		c.ToolChoice = json.RawMessage(`"required"`)
	case "tool":
		data, err := marshal(map[string]any{"function": map[string]string{"name": choice.Name}})
		c.ToolChoice = data
		return err
	default:
		return invalid("tool_choice", "tool_choice.type: expected auto, any, tool or none")
	}
	return nil
}
