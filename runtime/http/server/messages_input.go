//go:build unix

package server

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/chat"
)

// A messageInput is a message of a request to /v1/messages.
type messageInput struct {
	Role    string          `json:"role"`    // "user", "assistant" or "system"
	Content json.RawMessage `json:"content"` // a text or a list of blocks
}

// A messageBlock is a block of a message. Images and files in the newest message of the user
// are refused; a text stands for them elsewhere, and for the blocks of Anthropic's own tools.
type messageBlock struct {
	Type     string          `json:"type"`          // "text", "tool_use", "tool_result", "document", "search_result", "tool_reference", "thinking" or "redacted_thinking", which is left out
	Text     string          `json:"text"`          // of text
	Thinking string          `json:"thinking"`      // of thinking: the reasoning
	ID       string          `json:"id"`            // of tool_use
	Name     string          `json:"name"`          // of tool_use: the tool
	Input    json.RawMessage `json:"input"`         // of tool_use: an object
	UseID    string          `json:"tool_use_id"`   // of tool_result: id of the tool_use
	Content  json.RawMessage `json:"content"`       // of tool_result and search_result: a text or blocks
	Source   messageSource   `json:"source"`        // of document
	Tool     string          `json:"tool_name"`     // of tool_reference
	IsError  bool            `json:"is_error"`      // of tool_result: the text is preceded by "Error: "
	Cache    json.RawMessage `json:"cache_control"` // accepted without effect: prefixes are always cached
}

// conversation translates system and messages.
func (q *messagesRequest) conversation(tick func() error) ([]chat.Message, error) {
	if err := checkCount(len(q.Messages)); err != nil {
		return nil, err
	}
	c := conversation{path: "system", tick: tick}
	text, err := systemText(q.System)
	if err != nil {
		return nil, invalid("system", "system%v", err)
	}
	c.system(text)
	for i, data := range q.Messages {
		if err := c.add("messages", fmt.Sprintf("messages[%d]", i), data, &messageInput{}); err != nil {
			return nil, err
		}
	}
	return c.list()
}

// read adds a message to a conversation.
func (m *messageInput) read(c *conversation) error {
	if m.Role != "user" && m.Role != "assistant" && m.Role != "system" {
		return fmt.Errorf(".role: %.40q; expected user, assistant or system", m.Role)
	}
	list, err := readBlocks(m.Content)
	if err != nil {
		return fmt.Errorf(".content%w", err)
	}
	if m.Role != "system" {
		c.unread = unread{} // also if the message has nothing but results
	}
	if len(list) == 0 { // an empty text
		list = []messageBlock{{Type: "text"}}
	}
	message, isList := c.path, len(m.Content) > 0 && m.Content[0] == '['
	begin := func(i int) {
		if isList {
			c.path = fmt.Sprintf("%s.content[%d]", message, i)
		}
	}
	var texts []string
	say := func() {
		switch text := strings.Join(texts, "\n"); {
		case len(texts) == 0:
		case m.Role == "assistant":
			c.answer(text)
		case m.Role == "system":
			c.system(text)
		default:
			c.say("user", text)
		}
		texts = nil
	}
	for i := range list {
		b := &list[i]
		text, ok, err := b.plain()
		if err != nil {
			return fmt.Errorf(".content[%d]%w", i, err)
		}
		if kind := media[b.Type]; !ok && kind != "" {
			text, ok = c.omit(m.Role, kind, fmt.Sprintf(".content[%d]: a block of type %.40q is not supported; this service reads text only", i, b.Type)), true
		}
		if ok {
			if len(texts) == 0 {
				begin(i)
			}
			texts = append(texts, text)
			continue
		}
		say()
		begin(i)
		if err := b.read(c, m.Role); err != nil {
			return fmt.Errorf(".content[%d]%w", i, err)
		}
	}
	say()
	return nil
}

// read adds a block that is not text to a conversation.
func (b *messageBlock) read(c *conversation, role string) error {
	switch {
	case b.Type == "thinking" && role == "assistant":
		c.reason(b.Thinking)
	case b.Type == "redacted_thinking" && role == "assistant":
	case b.Type == "tool_use" && role == "assistant":
		input, ok := objectOf(b.Input)
		if !ok {
			return fmt.Errorf(".input: expected an object")
		}
		return c.call("id", b.ID, b.Name, input)
	case b.Type == "tool_result" && role == "user":
		text, err := blocksText(b.Content)
		if err != nil {
			return fmt.Errorf(".content%w", err)
		}
		if b.IsError {
			text = "Error: " + text
		}
		return c.result("tool_use_id", b.UseID, text)
	default:
		return fmt.Errorf(": a block of type %.40q is not supported in a message of the role %s", b.Type, role)
	}
	return nil
}

// readBlocks decodes a content: a text or a list of blocks.
func readBlocks(data json.RawMessage) ([]messageBlock, error) {
	if isNeutral(data, "") {
		return nil, nil
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		return []messageBlock{{Type: "text", Text: text}}, nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(data, &parts) != nil {
		return nil, fmt.Errorf(": expected a text or a list of blocks")
	}
	if len(parts) > maxMessages {
		return nil, fmt.Errorf(": expected at most %d blocks", maxMessages)
	}
	list := make([]messageBlock, len(parts))
	for i, data := range parts {
		if err := json.Unmarshal(data, &list[i]); err != nil {
			return nil, fmt.Errorf("[%d]%w", i, inside(err))
		}
	}
	return list, nil
}

// blocksText returns the text of a content whose blocks are text or media.
func blocksText(data json.RawMessage) (string, error) {
	list, err := readBlocks(data)
	if err != nil {
		return "", err
	}
	texts := make([]string, len(list))
	for i := range list {
		b := &list[i]
		text, ok, err := b.plain()
		kind := media[b.Type]
		switch {
		case err != nil:
			return "", fmt.Errorf("[%d]%w", i, err)
		case !ok && kind == "":
			return "", fmt.Errorf("[%d]: a block of type %.40q is not supported here", i, b.Type)
		case !ok:
			text = omitted(kind)
		}
		texts[i] = text
	}
	return strings.Join(texts, "\n"), nil
}

// systemText returns the text of the key system, whose blocks are all of type text.
func systemText(data json.RawMessage) (string, error) {
	list, err := readBlocks(data)
	if err != nil {
		return "", err
	}
	for i := range list {
		if list[i].Type != "text" {
			return "", fmt.Errorf("[%d]: a block of type %.40q is not supported here; only text is", i, list[i].Type)
		}
	}
	return blocksText(data)
}
