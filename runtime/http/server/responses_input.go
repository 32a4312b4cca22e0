//go:build unix

package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/text/chat"
)

// responseItems is the input of a response: a text, or a list of items.
type responseItems []json.RawMessage

// UnmarshalJSON accepts a text or a list of items.
func (l *responseItems) UnmarshalJSON(data []byte) error {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '"' {
		item, err := marshal(map[string]json.RawMessage{"type": json.RawMessage(`"message"`), "role": json.RawMessage(`"user"`), "content": data})
		*l = responseItems{bytes.TrimSpace(item)}
		return err
	}
	var items []json.RawMessage
	if json.Unmarshal(data, &items) != nil {
		return invalid("input", "input: expected a text or a list of items")
	}
	*l = items
	return nil
}

// An inputItem is an item of the input of a response.
type inputItem struct {
	Type      string          `json:"type"`              // "message" (default), "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning" or "item_reference" (default with an id alone); items of a service's own tools are left out
	ID        string          `json:"id"`                // of an item_reference: the id of an output item of a stored response
	Role      string          `json:"role"`              // "user", "assistant", "system" or "developer"
	Content   json.RawMessage `json:"content"`           // a text, or parts of type input_text, output_text, refusal or reasoning_text
	CallID    string          `json:"call_id"`           // id that joins a call and its output
	Name      string          `json:"name"`              // name of the function or custom tool
	Namespace string          `json:"namespace"`         // namespace of the function or custom tool
	Arguments string          `json:"arguments"`         // arguments of a function call, as JSON in a text
	Input     string          `json:"input"`             // input of a custom tool's call
	Output    json.RawMessage `json:"output"`            // result of a call: a text or parts of type input_text
	Summary   json.RawMessage `json:"summary"`           // of reasoning: parts of type summary_text; read if there is no content
	Encrypted string          `json:"encrypted_content"` // of reasoning; read if there is no content, and ignored if it is another service's
}

// A textPart is a part of a content.
type textPart struct {
	Type    string `json:"type"`    // "input_text", "output_text", "reasoning_text", "summary_text" or "refusal"; images, files and audio are refused in the newest message of the user, and left out elsewhere
	Text    string `json:"text"`    // the text
	Refusal string `json:"refusal"` // text of a refusal
}

// responseInput collects the items of a response: those of the previous response, and
// those of the input, with references resolved.
func (s *Server) responseInput(r *http.Request, run *responseRun) error {
	req := run.req
	if len(req.Input) == 0 {
		return invalid("input", "input: expected a text or at least one item")
	}
	client := callerOf(r).Name
	if req.Previous != "" {
		earlier := s.stored.get(client, req.Previous)
		if earlier == nil {
			e := invalid("previous_response_id", "previous_response_id: there is no stored response %.80q; it was not stored, or has expired", req.Previous).withCode("previous_response_not_found")
			e.status = http.StatusNotFound
			return e
		}
		run.items = earlier.items
	}
	for i, data := range req.Input {
		var head struct{ Type, ID, Role string }
		if json.Unmarshal(data, &head) == nil && (head.Type == "item_reference" || head.Type == "" && head.Role == "" && head.ID != "") {
			if data = s.stored.item(client, head.ID); data == nil {
				return invalid("input", "input[%d]: there is no stored item %.80q; send the item itself", i, head.ID)
			}
		}
		run.input = append(run.input, data)
	}
	run.items = append(run.items[:len(run.items):len(run.items)], run.input...)
	if len(run.items) > maxMessages {
		return invalid("input", "input: expected at most %d items, with those of earlier responses", maxMessages)
	}
	size := 0
	for _, data := range run.items {
		size += len(data)
	}
	return s.take(r, "input", int64(bytesOfByte*size))
}

// conversation translates the items to messages.
func (c *responseRun) conversation(tick func() error) ([]chat.Message, error) {
	list := conversation{path: "instructions", tick: tick}
	list.system(or(c.req.Instructions, ""))
	earlier := len(c.items) - len(c.input)
	for i, data := range c.items {
		path := fmt.Sprintf("input[%d]", i-earlier)
		if i < earlier {
			path = fmt.Sprintf("previous_response_id: item %d of that conversation", i)
		}
		if err := list.add("input", path, data, &inputItem{}); err != nil {
			return nil, err
		}
	}
	return list.list()
}

// read adds an item to a conversation.
func (t *inputItem) read(c *conversation) error {
	switch t.Type {
	case "", "message":
		return t.message(c)
	case "reasoning":
		text, err := t.reasoning()
		c.reason(text)
		return err
	case "function_call":
		arguments, err := callArguments(t.Arguments)
		if err != nil {
			return err
		}
		return c.call("call_id", t.CallID, functionName(t.Namespace, t.Name), arguments)
	case "custom_tool_call":
		arguments, err := marshal(customInput{t.Input})
		if err != nil {
			return err
		}
		return c.call("call_id", t.CallID, functionName(t.Namespace, t.Name), bytes.TrimSpace(arguments))
	case "function_call_output", "custom_tool_call_output":
		text, err := partsText(t.Output, omittedPart)
		if err != nil {
			return fmt.Errorf(".output%w", err)
		}
		return c.result("call_id", t.CallID, text)
	}
	if _, ok := hosted(t.Type); ok { // the answer that follows says what it found
		return nil
	}
	return fmt.Errorf(": items of type %.40q are not supported", t.Type)
}

// callArguments returns the arguments of a call: an object, or a JSON string with what
// the model wrote, for example before its answer was cut off.
func callArguments(text string) (json.RawMessage, error) {
	switch data := bytes.TrimSpace([]byte(text)); {
	case len(data) == 0:
		return json.RawMessage("{}"), nil
	case isObject(data) && json.Valid(data):
		return data, nil
	}
	data, err := marshal(text)
	return bytes.TrimSpace(data), err
}

// message adds a message.
func (t *inputItem) message(c *conversation) error {
	text, err := partsText(t.Content, func(i int, kind, word string) string {
		return c.omit(t.Role, word, fmt.Sprintf(".content[%d]: type %.40q; this service reads text only", i, kind))
	})
	if err != nil {
		return fmt.Errorf(".content%w", err)
	}
	switch t.Role {
	case "assistant":
		c.answer(text)
	case "system", "developer":
		c.system(text)
	case "user":
		c.say("user", text)
	default:
		return fmt.Errorf(".role: %.40q; expected user, assistant, system or developer", t.Role)
	}
	return nil
}

// reasoning returns the text of reasoning.
func (t *inputItem) reasoning() (string, error) {
	text, err := partsText(t.Content, nil)
	if err != nil {
		return "", fmt.Errorf(".content%w", err)
	}
	if text != "" {
		return text, nil
	}
	if text, err := base64.StdEncoding.DecodeString(t.Encrypted); err == nil && utf8.Valid(text) && len(text) > 0 {
		return string(text), nil
	}
	if text, err = partsText(t.Summary, nil); err != nil {
		return "", fmt.Errorf(".summary%w", err)
	}
	return text, nil
}

// omittedPart returns the text that stands for media in the output of a call.
func omittedPart(_ int, _, word string) string { return omitted(word) }

// partsText returns the text of a content: a text, or a list of parts, or null. omit
// returns the text that stands for media; nil: they are refused.
func partsText(data json.RawMessage, omit func(i int, kind, word string) string) (string, error) {
	if isNeutral(data, "") {
		return "", nil
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		return "", fmt.Errorf(": expected a text or a list of parts")
	}
	if len(list) > maxMessages {
		return "", fmt.Errorf(": expected at most %d parts", maxMessages)
	}
	texts := make([]string, len(list))
	for i, data := range list {
		var p textPart
		if err := json.Unmarshal(data, &p); err != nil {
			return "", fmt.Errorf("[%d]%w", i, inside(err))
		}
		text, ok := p.text()
		word := media[p.Type]
		switch {
		case !ok && (word == "" || omit == nil):
			return "", fmt.Errorf("[%d]: type %.40q; only text is supported", i, p.Type)
		case !ok:
			text = omit(i, p.Type, word)
		}
		texts[i] = text
	}
	return strings.Join(texts, "\n"), nil
}
