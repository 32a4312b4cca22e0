//go:build unix

package server

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// A responseObject is a response.
type responseObject struct {
	ID           string            `json:"id"`
	Object       string            `json:"object"`
	Created      int64             `json:"created_at"`
	Completed    *int64            `json:"completed_at"`
	Status       string            `json:"status"`
	Background   bool              `json:"background"`
	Error        *responseError    `json:"error"`
	Incomplete   *incomplete       `json:"incomplete_details"`
	Instructions *string           `json:"instructions"`
	MaxTokens    *int              `json:"max_output_tokens"`
	MaxCalls     *int              `json:"max_tool_calls"`
	Model        string            `json:"model"`
	Output       []*responseItem   `json:"output"`
	Parallel     bool              `json:"parallel_tool_calls"`
	Previous     *string           `json:"previous_response_id"`
	CacheKey     *string           `json:"prompt_cache_key,omitempty"`
	Reasoning    map[string]any    `json:"reasoning"`
	Tier         string            `json:"service_tier"`
	Store        bool              `json:"store"`
	Temperature  float64           `json:"temperature"`
	Text         map[string]any    `json:"text"`
	ToolChoice   json.RawMessage   `json:"tool_choice"`
	Tools        []json.RawMessage `json:"tools"`
	TopLogprobs  int               `json:"top_logprobs"`
	TopP         float64           `json:"top_p"`
	Truncation   string            `json:"truncation"`
	Usage        *responseUsage    `json:"usage"`
	User         *string           `json:"user"`
	Metadata     map[string]string `json:"metadata"`
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type responseUsage struct {
	Input         int          `json:"input_tokens"`
	InputDetails  usageDetails `json:"input_tokens_details"`
	Output        int          `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

// A responseItem is an item of the output. Which fields it has depends on its type.
type responseItem struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Status    string          `json:"status"`
	Role      string          `json:"role,omitempty"`
	Content   *[]responsePart `json:"content,omitempty"`
	Summary   *[]responsePart `json:"summary,omitempty"`
	Encrypted *string         `json:"encrypted_content,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments *string         `json:"arguments,omitempty"`
	Input     *string         `json:"input,omitempty"`
}

// A responsePart is a part of an item's content or summary.
type responsePart struct {
	Type        string      `json:"type"`
	Text        string      `json:"text"`
	Annotations *[]struct{} `json:"annotations,omitempty"` // of output_text
	Logprobs    *[]topped   `json:"logprobs,omitempty"`    // of output_text
}

// object returns the response before its output.
func (c *responseRun) object(r *http.Request) *responseObject {
	q, text := c.req, map[string]any{"format": map[string]string{"type": "text"}}
	if q.Text != nil && q.Text.Format != nil {
		text["format"] = q.Text.Format
	}
	out := &responseObject{
		ID: newID("resp_"), Object: "response", Created: time.Now().Unix(), Status: "in_progress", Instructions: q.Instructions, MaxTokens: q.MaxTokens, Model: c.model,
		Output: []*responseItem{}, Parallel: or(q.Parallel, true), CacheKey: q.CacheKey, Reasoning: map[string]any{"effort": nil, "summary": nil}, Tier: "default", Store: or(q.Store, true),
		Temperature: or(q.Temperature, c.s.cfg.Defaults.Temperature), Text: text, ToolChoice: q.ToolChoice, Tools: q.Tools, TopLogprobs: q.TopLogprobs, TopP: or(q.TopP, cmp.Or(c.s.cfg.Defaults.TopP, 1)), Truncation: "disabled",
		Metadata: q.Metadata,
	}
	if q.Previous != "" {
		out.Previous = &q.Previous
	}
	if q.User != "" {
		out.User = &q.User
	}
	if q.Reasoning != nil {
		out.Reasoning["effort"] = q.Reasoning.Effort
	}
	if s := q.summary(); s != "" {
		out.Reasoning["summary"] = s
	}
	if isNeutral(out.ToolChoice, "") {
		out.ToolChoice = json.RawMessage(`"auto"`)
	}
	if out.Tools == nil {
		out.Tools = []json.RawMessage{}
	}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	return out
}

// item returns the output item of a block.
func (c *responseRun) item(b *block, status string) *responseItem {
	if b.item == "" {
		b.item = newID(map[int]string{reasoningBlock: "rs_", textBlock: "msg_", callBlock: "fc_"}[b.kind])
	}
	item, text := &responseItem{ID: b.item, Status: status}, b.text.String()
	switch b.kind {
	case reasoningBlock:
		item.Type, item.Content, item.Summary = "reasoning", &[]responsePart{}, &[]responsePart{}
		if parts := c.parts(b); text != "" {
			*c.reasoningParts(item) = parts
		}
		if slices.Contains(c.req.Include, includeReasoning) && status != "in_progress" {
			encoded := base64.StdEncoding.EncodeToString([]byte(text))
			item.Encrypted = &encoded
		}
	case textBlock:
		parts := []responsePart{}
		if status != "in_progress" {
			parts = c.parts(b)
		}
		item.Type, item.Role, item.Content = "message", "assistant", &parts
	case callBlock:
		tool := c.tools.find(b.name)
		item.Type, item.CallID, item.Namespace, item.Name, item.Arguments = "function_call", b.id, tool.namespace, tool.name, &text
		if tool.custom {
			input := customText(text)
			item.Type, item.Arguments, item.Input = "custom_tool_call", nil, &input
		}
	}
	return item
}

// reasoningParts returns the list of a reasoning item that its text belongs to.
func (c *responseRun) reasoningParts(item *responseItem) *[]responsePart {
	if c.req.summary() != "" {
		return item.Summary
	}
	return item.Content
}

// parts returns the parts of a block of text or reasoning.
func (c *responseRun) parts(b *block) []responsePart {
	part := responsePart{Type: "reasoning_text", Text: b.text.String()}
	switch {
	case b.kind == textBlock:
		list := []topped{}
		if slices.Contains(c.req.Include, includeLogprobs) {
			list = c.s.chatLogprobs(b.events).Content
		}
		part.Type, part.Annotations, part.Logprobs = "output_text", &[]struct{}{}, &list
	case c.req.summary() != "":
		part.Type = "summary_text"
	}
	return []responsePart{part}
}

// customText returns the input of a custom tool's call.
func customText(arguments string) string {
	var in customInput
	if json.Unmarshal([]byte(arguments), &in) != nil { // the model wrote something else
		return arguments
	}
	return in.Input
}
