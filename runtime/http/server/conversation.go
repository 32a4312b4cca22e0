//go:build unix

package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/iflowc/iflowc/runtime/text/chat"
)

// A conversation collects the messages of a request to an API whose messages are lists
// of items or blocks. Reasoning, text and tool calls that follow one another become one
// message of the assistant, and leading system messages become one.
type conversation struct {
	messages []chat.Message
	leading  []string          // texts of the leading system messages
	first    string            // path of the first of them
	names    map[string]string // functions by the ids of their calls
	path     string            // of the item or block that is being added; messages keep that of their first one
	unread   unread            // media in the newest message of the user
	media    string            // the error for media in the item that is being added
	tick     func() error      // called before each item that is added
}

// A conversationItem is an item that a request lists. The text of an error of read
// continues the item's path.
type conversationItem interface{ read(c *conversation) error }

// add decodes an item of the request's key and adds it.
func (c *conversation) add(key, path string, data json.RawMessage, item conversationItem) error {
	if err := c.tick(); err != nil {
		return err
	}
	c.path, c.media = path, ""
	err := json.Unmarshal(data, item)
	if err != nil {
		err = inside(err)
	} else {
		err = item.read(c)
	}
	if err != nil {
		return invalid(key, "%s%v", path, err)
	}
	if c.media != "" {
		c.unread = unread{key, path + c.media}
	}
	return nil
}

// omit returns the text that stands for media in a message of a role. at is the rest of the
// media's path, with the error if the message is the newest one of the user.
func (c *conversation) omit(role, kind, at string) string {
	if role == "user" && c.media == "" {
		c.media = at
	}
	return omitted(kind)
}

// list returns the messages.
func (c *conversation) list() ([]chat.Message, error) {
	if err := c.unread.err(); err != nil || len(c.leading) == 0 {
		return c.messages, err
	}
	return slices.Insert(c.messages, 0, chat.Message{Role: "system", Content: strings.Join(c.leading, "\n\n"), Path: c.first}), nil
}

// system adds instructions.
func (c *conversation) system(text string) {
	switch {
	case text == "":
	case len(c.messages) == 0:
		if len(c.leading) == 0 {
			c.first = c.path
		}
		c.leading = append(c.leading, text)
	default:
		c.say("system", text)
	}
}

// say adds a message.
func (c *conversation) say(role, text string) {
	c.push(chat.Message{Role: role, Content: text})
}

// push adds a message with the path of the item that it begins with.
func (c *conversation) push(m chat.Message) {
	if m.Path = c.path; m.Role == "user" || m.Role == "assistant" {
		c.unread = unread{}
	}
	c.messages = append(c.messages, m)
}

// assistant returns the last message if it is the assistant's and may go on, else a new
// one.
func (c *conversation) assistant(mayGoOn func(m *chat.Message) bool) *chat.Message {
	n := len(c.messages)
	if n == 0 || c.messages[n-1].Role != "assistant" || !mayGoOn(&c.messages[n-1]) {
		c.push(chat.Message{Role: "assistant"})
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

// call adds a tool call of the assistant; key is the key of its id. Arguments is a JSON
// object, or a string if they are not valid.
func (c *conversation) call(key, id, name string, arguments json.RawMessage) error {
	if err := cmp.Or(checkShort(key, id), checkName("name", name)); err != nil {
		return err
	}
	m := c.assistant(func(*chat.Message) bool { return true })
	if len(m.ToolCalls) == maxTools {
		return fmt.Errorf(": expected at most %d calls that follow one another", maxTools)
	}
	if c.names == nil {
		c.names = map[string]string{}
	}
	c.names[id] = name
	m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: id, Type: "function", Function: chat.Function{Name: name, Arguments: arguments}})
	return nil
}

// result adds the result of a tool call; key is the key of its id. Some templates read
// the function's name.
func (c *conversation) result(key, id, text string) error {
	c.push(chat.Message{Role: "tool", Content: text, ToolCallID: id, Name: c.names[id]})
	return checkShort(key, id)
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
func chatTool(name, description string, parameters json.RawMessage, strict bool) json.RawMessage {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
		Strict      bool            `json:"strict,omitempty"`
	}
	if isNeutral(parameters, "") {
		parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	data, err := marshal(struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function{name, description, parameters, strict}})
	if err != nil {
		return nil // parameters come from a decoded request, so they are valid JSON
	}
	return data
}

// renamed returns an error of the chat request with the keys of the API that the request
// was translated from: names maps the keys of the former to those of the latter. A
// message has its key at its start. What follows may be text of the client or of the
// chat template.
func renamed(err error, names map[string]string) error {
	var e *apiError
	if !errors.As(err, &e) || e.Param == nil {
		return err
	}
	other := *e
	if name, ok := names[*e.Param]; ok {
		other.Param = &name
	}
	key := e.Message[:strings.IndexFunc(e.Message+" ", func(r rune) bool { return r != '_' && !unicode.IsLetter(r) })]
	if name, ok := names[key]; ok {
		other.Message = name + e.Message[len(key):]
	}
	return &other
}
