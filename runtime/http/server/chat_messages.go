//go:build unix

package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/iflowc/iflowc/runtime/text/chat"
)

// chatMessages are the messages of a request.
type chatMessages []chat.Message

// UnmarshalJSON decodes messages, unless there are too many, and sets their paths.
func (l *chatMessages) UnmarshalJSON(data []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return invalid("messages", "messages%v", inside(err))
	}
	if err := checkCount(len(list)); err != nil {
		return err
	}
	*l = make(chatMessages, len(list))
	for i, data := range list {
		path := fmt.Sprintf("messages[%d]", i)
		if err := json.Unmarshal(data, &(*l)[i]); err != nil {
			return invalid("messages", "%s%v", path, inside(err))
		}
		(*l)[i].Path = path
	}
	return nil
}

// textBytes returns the number of bytes of the messages' text.
func textBytes(messages []chat.Message) (n int) {
	for i := range messages {
		n += len(messages[i].Text())
	}
	return n
}

// checkCount bounds the number of messages.
func checkCount(n int) error {
	if n > maxMessages {
		return invalid("messages", "messages: expected at most %d messages", maxMessages)
	}
	return nil
}

// checkMessages validates messages and joins lists of text parts, which few templates
// support.
func checkMessages(list []chat.Message) error {
	switch {
	case len(list) == 0:
		return invalid("messages", "messages: expected at least one message")
	case len(list) > maxMessages:
		return invalid("messages", "messages: expected at most %d messages; %s is one more", maxMessages, list[maxMessages].Path)
	}
	var last unread
	for i := range list {
		m := &list[i]
		media, err := checkMessage(m)
		if err != nil {
			return invalid("messages", "%s%v", m.Path, err)
		}
		if m.Role == "user" || m.Role == "assistant" {
			last = unread{"messages", media}
		}
	}
	return last.err()
}

// checkMessage validates a message and joins its parts to one text. The text of an error
// continues the message's path, as those of the functions below do. unread is the error for
// media, if the message is the newest one of the user.
func checkMessage(m *chat.Message) (unread string, err error) {
	switch {
	case m.Role == "":
		return "", errors.New(" has no role")
	case len(m.Role) > maxRole:
		return "", fmt.Errorf(".role: expected at most %d bytes", maxRole)
	case len(m.ToolCalls) > maxTools:
		return "", fmt.Errorf(".tool_calls: expected at most %d calls", maxTools)
	}
	if err := cmp.Or(checkShort("name", m.Name), checkShort("tool_call_id", m.ToolCallID)); err != nil {
		return "", err
	}
	for k := range m.ToolCalls {
		c := &m.ToolCalls[k]
		if err := cmp.Or(checkName("function.name", c.Function.Name), checkShort("id", c.ID)); err != nil {
			return "", fmt.Errorf(".tool_calls[%d]%w", k, err)
		}
	}
	if m.Content == nil && len(m.ToolCalls) == 0 {
		m.Content = "" // templates would write None
	}
	parts, ok := m.Content.([]chat.Part)
	if !ok {
		return "", nil
	}
	for k, data := range parts {
		var part struct {
			Type    string  `json:"type"`
			Text    *string `json:"text"`
			Refusal *string `json:"refusal"`
		}
		err := json.Unmarshal(data, &part)
		word, refused := media[part.Type], fmt.Sprintf(".content[%d]: type %.40q; only parts of type \"text\" are supported", k, part.Type)
		switch {
		case err == nil && part.Type == "text" && part.Text != nil:
		case err == nil && part.Type == "refusal" && part.Refusal != nil && m.Role == "assistant":
			parts[k] = chat.TextPart(*part.Refusal)
		case part.Type == "text":
			return "", fmt.Errorf(".content[%d].text: expected a text", k)
		case err == nil && word != "":
			parts[k] = chat.TextPart(omitted(word))
			if m.Role == "user" && unread == "" {
				unread = m.Path + refused
			}
		default:
			return "", errors.New(refused)
		}
	}
	m.Content = m.Text()
	return unread, nil
}

// checkShort returns an error for a name or an id that is too long.
func checkShort(key, text string) error {
	if len(text) > maxName {
		return fmt.Errorf(".%s: expected at most %d bytes", key, maxName)
	}
	return nil
}

// checkName returns an error for an invalid name of a function or tool.
func checkName(key, name string) error {
	if name == "" || len(name) > maxToolName {
		return fmt.Errorf(".%s: expected between 1 and %d bytes", key, maxToolName)
	}
	return nil
}
