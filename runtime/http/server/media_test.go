//go:build unix

package server_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestMedia checks that a text stands for media in earlier messages and in results of
// tools, that documents are read, and that media in the newest message of the user are
// refused with their path. The template refuses messages without the expected text.
func TestMedia(t *testing.T) {
	t.Parallel()
	const (
		chat      = "/v1/chat/completions"
		messages  = "/v1/messages"
		responses = "/v1/responses"
		ollama    = "/api/chat"

		image = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}`
		url   = `{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}`
		yes   = `{"role":"assistant","content":"yes"}`
	)
	s := constrained(t, `{% set all = messages | map(attribute='content') | join('|') %}{{ raise_exception('<' + all + '>') }}{# tools #}`)
	for _, c := range []struct{ path, list, want string }{
		{chat, `{"role":"user","content":[{"type":"text","text":"x"},` + url + `]},` + yes + `,` + user, "<x\n[image omitted]|yes|a>"},
		{chat, user + `,{"role":"tool","content":[` + url + `,{"type":"input_audio"},{"type":"video_url"},{"type":"file"}]}`, "<a|[image omitted]\n[audio omitted]\n[video omitted]\n[file omitted]>"},
		{chat, `{"role":"user","content":[` + url + `]},` + user, "<[image omitted]|a>"},
		{chat, user + `,{"role":"user","content":[{"type":"text","text":"x"},` + url + `]}`, `messages[1].content[1]: type "image_url"`},
		{chat, `{"role":"user","content":[{"type":"text","text":null}]}`, "messages[0].content[0].text: expected a text"},
		{chat, `{"role":"user","content":[` + url + `]},{"role":"tool","content":"a"}`, `messages[0].content[0]: type "image_url"`},
		{messages, user + `,{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"},` + image + `]}]}`, "<a||x\n[image omitted]>"},
		{messages, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"tool_reference","tool_name":"Read"},{"type":"document","source":{"type":"url"}}]}]}`, "<Read\n[document omitted]>"},
		{messages, `{"role":"user","content":[{"type":"document","source":{"type":"text","data":"x"}},{"type":"document","source":{"type":"content","content":[{"type":"text","text":"y"},` + image + `]}},{"type":"search_result","source":"https://x","title":"t","content":[{"type":"text","text":"z"}]}]}`, "<x\ny\n[image omitted]\nz>"},
		{messages, `{"role":"user","content":[` + image + `]},` + yes + `,` + user, "<[image omitted]|yes|a>"},
		{messages, `{"role":"user","content":[` + image + `]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a"}]}`, "<[image omitted]|a>"},
		{messages, user + `,{"role":"user","content":[{"type":"text","text":"x"},` + image + `]}`, "messages[1].content[1]: a block of type \"image\""},
		{messages, `{"role":"user","content":[{"type":"document","source":{"type":"base64"}}]}`, "messages[0].content[0]: a block of type \"document\""},
		{messages, user + `,{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"x"}},{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","title":"t","url":"https://x"}]},{"type":"text","text":"y"}]},` + user, "<a|[tool call omitted]\n[tool result omitted]\ny|a>"},
		{messages, user + `,{"role":"assistant","content":[{"type":"mcp_tool_use","id":"m","name":"f","server_name":"s","input":{}}]},{"role":"assistant","content":[{"type":"mcp_tool_result","tool_use_id":"m","is_error":false,"content":"x"}]},` + user, "<a|[tool call omitted]|[tool result omitted]|a>"},
		{responses, user + `,{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search"}},{"type":"message","role":"assistant","content":"y"},` + user, "<a|y|a>"},
		{responses, user + `,{"type":"computer_call","call_id":"c","action":{}},{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot"}}`, "<a>"},
		{responses, `{"role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_image"}]},` + yes + `,` + user, "<x\n[image omitted]|yes|a>"},
		{responses, user + `,{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":[{"type":"input_image"},{"type":"input_file"}]}`, "<a||[image omitted]\n[file omitted]>"},
		{responses, user + `,{"role":"user","content":[{"type":"input_image"}]}`, `input[1].content[0]: type "input_image"`},
		{ollama, `{"role":"user","content":"x","images":["AA","AA"]},` + yes + `,` + user, "<x\n[image omitted]\n[image omitted]|yes|a>"},
		{ollama, user + `,{"role":"tool","content":"","images":["AA"]}`, "<a|[image omitted]>"},
		{ollama, user + `,{"role":"user","content":"x","images":["AA"]}`, "messages[1].images: this service reads text only"},
	} {
		body := `{"max_tokens":1,"max_output_tokens":null,"messages":[` + c.list + `]}`
		if c.path == responses {
			body = `{"input":[` + c.list + `]}`
		}
		var raw json.RawMessage
		status, _ := s.post(t, c.path, body, &raw)
		if message := refusal(raw); status != 400 || !strings.Contains(message, c.want) {
			t.Errorf("%s %s: status %d, %q; expected %q", c.path, c.list, status, message, c.want)
		}
	}
}
