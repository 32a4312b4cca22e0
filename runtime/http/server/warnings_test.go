//go:build unix

package server_test

import (
	"strings"
	"testing"
)

// TestWarnings checks that an odd schema does not refuse a request in any API, and that a
// header names what was ignored.
func TestWarnings(t *testing.T) {
	t.Parallel()
	s := constrained(t, plainTemplate+"{# tools #}")
	const odd = `{"type":"object","properties":{"a":{"enum":["x"],"required":true,"markdownDescription":"x"},"é":{"type":"strin\n"}}}`
	const free = `{"type":"object","properties":{"a":{"$ref":"#/b"}}}`
	for _, c := range []struct{ path, body, at string }{
		{"/v1/chat/completions", `{"max_tokens":9,"messages":[` + user + `],"response_format":{"type":"json_schema","json_schema":{"strict":true,"schema":` + odd + `}}}`, "/properties/a/required"},
		{"/v1/chat/completions", `{"max_tokens":9,"messages":[` + user + `],"guided_json":` + odd + `,"n":2}`, "/properties/a/required"},
		{"/v1/completions", `{"max_tokens":9,"prompt":"a","json_schema":` + odd + `}`, "/properties/a/required"},
		{"/v1/chat/completions", `{"max_tokens":9,"messages":[` + user + `],"tools":[{"function":{"name":"f","parameters":` + odd + `}}],"tool_choice":"required","stream":true}`, "/tools/f/properties/a/required"},
		{"/v1/chat/completions", `{"max_tokens":9,"messages":[` + user + `],"tools":[{"function":{"name":"f","parameters":` + free + `}}],"tool_choice":"required"}`, "/tools/f: only the names"},
		{"/v1/responses", `{"max_output_tokens":9,"input":"a","text":{"format":{"type":"json_schema","schema":` + odd + `}}}`, "/properties/a/required"},
		{"/v1/responses", `{"max_output_tokens":9,"input":"a","tools":[{"type":"function","name":"f","parameters":` + free + `}],"tool_choice":"required"}`, "/tools/f: only the names"},
		{"/v1/messages", `{"max_tokens":9,"messages":[` + user + `],"output_config":{"format":{"type":"json_schema","schema":` + odd + `}}}`, "/properties/a/required"},
		{"/v1/messages", `{"max_tokens":9,"messages":[` + user + `],"tools":[{"name":"f","input_schema":` + free + `}],"tool_choice":{"type":"any"}}`, "/tools/f: only the names"},
		{"/api/chat", `{"options":{"num_predict":9},"messages":[` + user + `],"format":` + odd + `}`, "/properties/a/required"},
	} {
		status, _, header := s.ask(t, "POST", c.path, c.body)
		list := header.Values("X-Iflowc-Warning")
		if status != 200 || len(list) == 0 || !strings.HasPrefix(list[0], "schema at "+c.at) {
			t.Errorf("%s %s: status %d, warnings %q", c.path, c.body, status, list)
		}
		for _, text := range list {
			if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
				t.Errorf("%q has other characters than the printable ones of ASCII", text)
			}
		}
	}
}
