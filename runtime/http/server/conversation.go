//go:build unix

package server

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/chat"
)

// A conversation collects the messages of a request to an API whose messages are lists
// of items or blocks. Reasoning, text and tool calls that follow one another become one
// message of the assistant, and leading system messages become one.
type conversation struct {
	messages []chat.Message
	leading  []string          // texts of the leading system messages
	names    map[string]string // functions by the ids of their calls
}

// list returns the messages.
func (c *conversation) list() []chat.Message {
	if len(c.leading) == 0 {
		return c.messages
	}
	return slices.Insert(c.messages, 0, chat.Message{Role: "system", Content: strings.Join(c.leading, "\n\n")})
}

// system adds instructions.
func (c *conversation) system(text string) {
	switch {
	case text == "":
	case len(c.messages) == 0:
		c.leading = append(c.leading, text)
	default:
		c.say("system", text)
	}
}

// say adds a message.
func (c *conversation) say(role, text string) {
	c.messages = append(c.messages, chat.Message{Role: role, Content: text})
}

// assistant returns the last message if it is the assistant's and may go on, else a new
// one.
func (c *conversation) assistant(mayGoOn func(m *chat.Message) bool) *chat.Message {
	n := len(c.messages)
	if n == 0 || c.messages[n-1].Role != "assistant" || !mayGoOn(&c.messages[n-1]) {
		c.messages = append(c.messages, chat.Message{Role: "assistant"})
	}
	return &c.messages[len(c.messages)-1]
}

// reason adds reasoning of the assistant.
func (c *conversation) reason(text string) {
	if text == "" {
		return
	}
	m := c.assistant(func(m *chat.Message) bool { return m.Content == nil && len(m.ToolCalls) == 0 && len(m.Extra) == 0 })
	m.Extra = reasoningField(text)
}

// reasoningField returns the field of a message with its reasoning.
func reasoningField(text string) []chat.Field {
	value, _ := json.Marshal(text) // cannot fail for a string
	return []chat.Field{{Key: "reasoning_content", Value: value}}
}

// answer adds text of the assistant.
func (c *conversation) answer(text string) {
	m := c.assistant(func(m *chat.Message) bool { return m.Content == nil && len(m.ToolCalls) == 0 })
	m.Content = text
}

// call adds a tool call of the assistant. Arguments is a JSON object.
func (c *conversation) call(id, name string, arguments json.RawMessage) {
	m := c.assistant(func(*chat.Message) bool { return true })
	if c.names == nil {
		c.names = map[string]string{}
	}
	c.names[id] = name
	m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: id, Type: "function", Function: chat.Function{Name: name, Arguments: arguments}})
}

// result adds the result of a tool call. Some templates read the function's name.
func (c *conversation) result(id, text string) {
	c.messages = append(c.messages, chat.Message{Role: "tool", Content: text, ToolCallID: id, Name: c.names[id]})
}

// isObject reports whether JSON is an object.
func isObject(data json.RawMessage) bool { return len(data) > 0 && data[0] == '{' }

// objectOf returns the arguments of a call: an object, which may be left out.
func objectOf(data json.RawMessage) (object json.RawMessage, ok bool) {
	if isNeutral(data, "") {
		return json.RawMessage("{}"), true
	}
	return data, isObject(data)
}

// chatTool returns a tool in the form of chat completions.
func chatTool(name, description string, parameters json.RawMessage) json.RawMessage {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	if isNeutral(parameters, "") {
		parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	data, err := marshal(struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function{name, description, parameters}})
	if err != nil {
		return nil // parameters come from a decoded request, so they are valid JSON
	}
	return data
}

// renamed returns an error of the chat request in the words of the API that the request
// was translated from: names maps the keys of the former to those of the latter.
func renamed(err error, names map[string]string) error {
	var e *apiError
	if !errors.As(err, &e) || e.Param == nil {
		return err
	}
	name, ok := names[*e.Param]
	if !ok {
		return err
	}
	other := *e
	other.Message = strings.ReplaceAll(e.Message, *e.Param, name)
	other.Param = &name
	return &other
}
