//go:build unix

package server

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
)

// A messageObject is a message.
type messageObject struct {
	ID           string        `json:"id"`
	Type         string        `json:"type"`
	Role         string        `json:"role"`
	Model        string        `json:"model"`
	Content      []any         `json:"content"`
	StopReason   *string       `json:"stop_reason"`
	StopSequence *string       `json:"stop_sequence"`
	Usage        *messageUsage `json:"usage"`
}

// messageUsage counts tokens. As in Anthropic's API, input tokens do not include those
// read from the cache.
type messageUsage struct {
	Input    int    `json:"input_tokens"`
	Creation int    `json:"cache_creation_input_tokens"`
	Read     int    `json:"cache_read_input_tokens"`
	Output   int    `json:"output_tokens"`
	Tier     string `json:"service_tier"`
}

type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingContent struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"` // empty: reasoning is not verified when it comes back
}

type toolUseContent struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// object returns the message before its content.
func (c *messageRun) object() *messageObject {
	return &messageObject{ID: c.id, Type: "message", Role: "assistant", Model: c.model, Content: []any{}, Usage: c.messageUsage()}
}

func (c *messageRun) messageUsage() *messageUsage {
	u := c.answer.usage(c.prompt)
	return &messageUsage{Input: u.PromptTokens - u.Details.CachedTokens, Read: u.Details.CachedTokens, Output: u.CompletionTokens, Tier: "standard"}
}

// content returns the content of a complete block.
func (c *messageRun) content(b *block) any {
	text := b.text.String()
	switch b.kind {
	case reasoningBlock:
		return thinkingContent{Type: "thinking", Thinking: text}
	case callBlock:
		return toolUseContent{"tool_use", b.id, b.name, b.arguments()}
	}
	return textContent{"text", text}
}

// stopReason translates the reason for the end of a choice.
func (c *messageRun) stopReason(finish string) (reason, sequence *string) {
	stop := &c.answer.choices[0].stop
	name := map[string]string{scheduler.FinishStop: "end_turn", scheduler.FinishLength: "max_tokens", "tool_calls": "tool_use"}[finish]
	if finish == scheduler.FinishLength && c.answer.generated() < *c.req.MaxTokens {
		name = "model_context_window_exceeded" // of fewer tokens than the request allows
	}
	if finish == scheduler.FinishStop && stop.Word != "" {
		name, sequence = "stop_sequence", &stop.Word
	}
	return &name, sequence
}

// A messageEvent is an event of a message's stream.
type messageEvent struct {
	Type    string         `json:"type"`
	Message *messageObject `json:"message,omitempty"`
	Index   *int           `json:"index,omitempty"`
	Block   any            `json:"content_block,omitempty"`
	Delta   any            `json:"delta,omitempty"`
	Usage   *messageUsage  `json:"usage,omitempty"`
}

// A messageDelta is the part of a block that an event adds.
type messageDelta struct {
	Type     string  `json:"type"`
	Text     *string `json:"text,omitempty"`
	Thinking *string `json:"thinking,omitempty"`
	Input    *string `json:"partial_json,omitempty"`
}

type messageEnd struct {
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
}

// A messageStream sends a message as server-sent events.
type messageStream struct {
	*messageRun
	sender *sender
	begun  bool // there are events after message_start
}

// stream sends the message as server-sent events.
func (c *messageRun) stream(r *http.Request, out *sender) error {
	s := &messageStream{messageRun: c, sender: out}
	if err := s.start(); err != nil {
		return err
	}
	out.admitted()
	_, finish, err := c.blocks(r.Context(), s, out.flush)
	if err != nil {
		return err
	}
	reason, sequence := c.stopReason(finish)
	if err := s.send(messageEvent{Type: "message_delta", Delta: messageEnd{reason, sequence}, Usage: c.messageUsage()}); err != nil {
		return err
	}
	if err := s.send(messageEvent{Type: "message_stop"}); err != nil {
		return err
	}
	return out.flush()
}

// start queues the first event.
func (s *messageStream) start() error {
	return s.sender.event("message_start", messageEvent{Type: "message_start", Message: s.object()})
}

// send queues an event. If message_start still waits, it gets the number of cached
// tokens, which is known now.
func (s *messageStream) send(e messageEvent) error {
	if !s.begun && s.sender.drop() {
		if err := s.start(); err != nil {
			return err
		}
	}
	s.begun = true
	return s.sender.event(e.Type, e)
}

// begin sends the event for a new block.
func (s *messageStream) begin(b *block) error {
	e := messageEvent{Type: "content_block_start", Index: &b.index, Block: s.content(b)}
	return s.send(e)
}

// add sends more text of a block.
func (s *messageStream) add(b *block, text string, _ []scheduler.Event) error {
	d := messageDelta{Type: "text_delta", Text: &text}
	switch b.kind {
	case reasoningBlock:
		d = messageDelta{Type: "thinking_delta", Thinking: &text}
	case callBlock:
		d = messageDelta{Type: "input_json_delta", Input: &text}
	}
	return s.send(messageEvent{Type: "content_block_delta", Index: &b.index, Delta: d})
}

// end sends the event for the end of a block.
func (s *messageStream) end(b *block) error {
	return s.send(messageEvent{Type: "content_block_stop", Index: &b.index})
}

// messageError is an error in Anthropic's format.
func messageError(e *apiError) (event string, body any) {
	kind := map[int]string{
		400: invalidRequest, 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error",
	}[e.status]
	if kind == "" {
		kind = "api_error"
	}
	type inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	if e.prompt > 0 { // clients find this sentence and its numbers, and shorten the conversation
		e = &apiError{Message: fmt.Sprintf("prompt is too long: %d tokens > %d maximum", e.prompt, e.most)}
	}
	return "error", struct {
		Type  string `json:"type"`
		Error inner  `json:"error"`
	}{"error", inner{kind, e.Message}}
}
