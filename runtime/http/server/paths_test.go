//go:build unix

package server_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// strictTemplate is a template like those of many models: it refuses roles that it does
// not know, two messages of the user that follow one another, and ids of calls that do
// not have 3 letters.
const strictTemplate = `{% macro calls(m) %}{% for c in m.tool_calls or [] %}{% if c.id | length != 3 %}{{ raise_exception('id') }}{% endif %}{{ c.function.name }}{% endfor %}{% endmacro %}` +
	`{% if messages[0].role == 'system' %}{{ messages[0].content }}{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}` +
	`{% for m in rest %}{% if m.role not in ['user', 'assistant', 'tool', 'system'] %}{{ raise_exception('role') }}{% endif %}` +
	`{% if m.role == 'user' and loop.previtem and loop.previtem.role == 'user' %}{{ raise_exception('messages of the role user') }}{% endif %}` +
	`{% if m.role == 'tool' and m.tool_call_id | length != 3 %}{{ raise_exception('result') }}{% endif %}{{ m.content }}{{ calls(m) }}{% endfor %}{# tools #}`

// Parts of conversations in the form of each API.
const (
	user   = `{"role":"user","content":"a"}`
	answer = `{"role":"assistant","content":"b"}`
	system = `{"role":"system","content":"c"}`

	think      = `{"type":"reasoning","summary":[{"type":"summary_text","text":"d"}]}`
	call       = `{"type":"function_call","call_id":"123","name":"f","arguments":"{}"}`
	output     = `{"type":"function_call_output","call_id":"123","output":[{"type":"input_text","text":"e"},{"type":"input_text","text":"f"}]}`
	longCall   = `{"type":"function_call","call_id":"1234","name":"f","arguments":"{}"}`
	longOutput = `{"type":"function_call_output","call_id":"1234","output":"e"}`

	useText   = `{"type":"text","text":"g"}`
	use       = `{"type":"tool_use","id":"123","name":"f","input":{}}`
	longUse   = `{"type":"tool_use","id":"1234","name":"f","input":{}}`
	result    = `{"type":"tool_result","tool_use_id":"123","content":[{"type":"text","text":"h"}]}`
	longReply = `{"type":"tool_result","tool_use_id":"1234","content":"h"}`
	thought   = `{"type":"thinking","thinking":"i","signature":""}`
)

// refusedParts are requests with one wrong part, and the start of the error, which names
// the part as the client counts.
var refusedParts = []struct{ path, list, want string }{
	// Chat Completions
	{"chat", answer + "," + `{"role":7}`, "messages[1].role: expected a text, found number"},
	{"chat", user + `,7`, "messages[1]: expected an object, found number"},
	{"chat", user + `,{"role":"user","content":{}}`, "messages[1].content: expected a text, found object"},
	{"chat", user + `,{"role":"assistant","tool_calls":[{"id":"123","function":{"name":"f","arguments":"{}"}},{"function":{"name":7}}]}`, "messages[1].tool_calls[1].function.name: expected a text"},
	{"chat", system + "," + user + `,{"role":"assistant","tool_calls":[{"id":"123","function":{"name":"f","arguments":"{}"}},{"id":"1","function":{"name":""}}]}`, "messages[2].tool_calls[1].function.name: expected between"},
	{"chat", system + "," + user + "," + `{"role":"critic","content":"a"}`, "messages[2]: chat template: role"},
	{"chat", system + "," + user + "," + answer + "," + user + "," + user, "messages[4]: chat template: messages of the role user"},
	{"chat", user + `,{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}`, "messages[1]: chat template: id"},
	{"chat", user + "," + answer + `,{"role":"tool","tool_call_id":"1","content":"a"}`, "messages[2]: chat template: result"},
	{"chat", user + `,{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}`, `messages[1].content[1]: type "image_url"`},

	// Responses: the instructions and two system messages become one, as do reasoning, text and calls.
	{"responses", system + "," + system + "," + user + "," + think + "," + answer + "," + call + "," + output + "," + user + "," + user, "input[8]: chat template: messages of the role user"},
	{"responses", system + "," + user + "," + think + "," + longCall, "input[2]: chat template: id"},
	{"responses", user + "," + call + "," + output + "," + longOutput, "input[3]: chat template: result"},
	{"responses", user + "," + answer + `,{"type":"function_call","call_id":"1","name":""}`, "input[2].name: expected between"},
	{"responses", system + "," + user + strings.Repeat(","+call, 129), "input[130]: expected at most 128 calls"},
	{"responses", system + "," + user + `,{"type":"reasoning","content":[{"type":"reasoning_text","text":"a"},{"type":"x"}]}`, "input[2].content[1]: type"},
	{"responses", user + `,{"role":"user","content":[{"type":"input_text","text":"a"},7]}`, "input[1].content[1]: expected an object"},
	{"responses", user + `,{"type":"function_call_output","call_id":"1","output":[{"type":"input_text","text":"a"},{"type":"x"}]}`, "input[1].output[1]: type"},
	{"responses", user + `,{"type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":7}]}`, "input[1].summary[1].text: expected a text"},
	{"responses", user + `,[]`, "input[1]: expected an object, found array"},

	// Messages: results become messages of their own.
	{"messages", system + "," + user + "," + `{"role":"assistant","content":[` + thought + "," + useText + "," + use + `]},{"role":"user","content":[` + result + "," + useText + `]},` + user, "messages[4]: chat template: messages of the role user"},
	{"messages", user + `,{"role":"assistant","content":[` + use + `]},{"role":"user","content":[` + result + "," + longReply + `]}`, "messages[2].content[1]: chat template: result"},
	{"messages", user + `,{"role":"assistant","content":[` + longUse + "," + use + `]}`, "messages[1].content[0]: chat template: id"},
	{"messages", user + `,{"role":"user","content":[` + useText + "," + useText + `]}`, "messages[1].content[0]: chat template: messages of the role user"},
	{"messages", user + `,{"role":"assistant","content":[` + useText + `,{"type":"tool_use","id":"1","name":""}]}`, "messages[1].content[1].name: expected between"},
	{"messages", user + `,{"role":"user","content":[` + result + `,{"type":"tool_result","tool_use_id":"1","content":[` + useText + `,{"type":"x"}]}]}`, `messages[1].content[1].content[1]: a block of type "x"`},
	{"messages", user + `,{"role":"assistant","content":[` + useText + strings.Repeat(","+use, 129) + `]}`, "messages[1].content[129]: expected at most 128 calls"},
	{"messages", `{"role":"assistant","content":[` + use + `]},{"role":"user","content":[` + result + strings.Repeat(","+result, 4095) + `]},` + user, "messages: expected at most 4096 messages; messages[1].content[4094] is one more"},

	// Ollama
	{"ollama", system + "," + system + "," + user + `,{"role":"critic","content":"a"}`, "messages[3]: chat template: role"},
	{"ollama", system + "," + user + "," + user, "messages[2]: chat template: messages of the role user"},
	{"ollama", user + `,{"role":"assistant","tool_calls":[{"id":"123","function":{"name":"f"}},{"function":{"name":7}}]}`, "messages[1].tool_calls[1].function.name: expected a text"},
	{"ollama", user + `,{"content":"a"}`, "messages[1] has no role"},
	{"ollama", user + `,{"role":"assistant","tool_calls":[{"id":"123","function":{"name":"f"}},{"id":"1","function":{"name":"f","arguments":[]}}]}`, "messages[1].tool_calls[1].function.arguments: expected an object"},
	{"ollama", user + `,{"role":"assistant","tool_calls":[{"id":"123","function":{"name":"f"}},{"id":"1","function":{"name":""}}]}`, "messages[1].tool_calls[1].function.name: expected between"},
	{"ollama", user + `,{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f"}}]}`, "messages[1]: chat template: id"},
}

// TestRefusedParts checks that errors name the part of the request that is wrong, in all
// APIs for conversations.
func TestRefusedParts(t *testing.T) {
	t.Parallel()
	s := constrained(t, strictTemplate)
	for _, c := range refusedParts {
		path, body := "/v1/chat/completions", `{"messages":[`+c.list+`]}`
		switch c.path {
		case "responses":
			path, body = "/v1/responses", `{"instructions":"s","input":[`+c.list+`]}`
		case "messages":
			path, body = "/v1/messages", `{"max_tokens":1,"system":"s","messages":[`+c.list+`]}`
		case "ollama":
			path = "/api/chat"
		}
		s.refuses(t, path, body, c.want)
	}
}

// refuses checks the message of an error.
func (s *service) refuses(t *testing.T, path, body, want string) {
	t.Helper()
	var raw json.RawMessage
	if status, _ := s.post(t, path, body, &raw); status != 400 || !strings.HasPrefix(refusal(raw), want) {
		t.Errorf("%s %.300s: status %d, %.300s; expected %q", path, body, status, raw, want)
	}
}

// TestRefusedEarlier checks the names of items that a request does not list: those of
// the conversation that it continues, instructions, and the prompt of /api/generate.
func TestRefusedEarlier(t *testing.T) {
	t.Parallel()
	s := constrained(t, strictTemplate)
	var first response
	if status, _ := s.post(t, "/v1/responses", `{"max_output_tokens":2,"input":[`+user+","+call+","+output+`]}`, &first); status != 200 {
		t.Fatalf("status %d, %+v", status, first)
	}
	next := `{"max_output_tokens":2,"previous_response_id":"` + first.ID + `","input":[` + user
	s.refuses(t, "/v1/responses", next+","+user+`]}`, "input[1]: chat template: messages of the role user")
	s.refuses(t, "/v1/responses", next+","+answer+`,{"type":"other"}]}`, "input[2]: items of type")

	strict := constrained(t, `{% for m in messages %}{% if messages[0].content == 'strict' and m.content == 'old' %}{{ raise_exception('old') }}{% endif %}{{ m.content }}{% endfor %}`)
	if status, _ := strict.post(t, "/v1/responses", `{"max_output_tokens":2,"input":[`+user+`,{"role":"user","content":"old"}]}`, &first); status != 200 {
		t.Fatalf("status %d, %+v", status, first)
	}
	strict.refuses(t, "/v1/responses", `{"instructions":"strict","previous_response_id":"`+first.ID+`","input":"a"}`, "previous_response_id: item 1 of that conversation: chat template: old")

	picky := constrained(t, `{% for m in messages %}{% if m.content == 'no' %}{{ raise_exception('messages, no') }}{% endif %}{{ m.content }}{% endfor %}`)
	picky.refuses(t, "/v1/responses", `{"instructions":"no","input":"a"}`, "instructions: chat template: messages, no")
	picky.refuses(t, "/v1/responses", `{"input":"no"}`, "input[0]: chat template: messages, no")
	picky.refuses(t, "/v1/messages", `{"max_tokens":1,"system":"no","messages":[`+user+`]}`, "system: chat template: messages, no")
	picky.refuses(t, "/v1/messages", `{"max_tokens":1,"messages":[`+user+`,{"role":"user","content":"no"}]}`, "messages[1]: chat template: messages, no")
	picky.refuses(t, "/api/generate", `{"system":"no","prompt":"a"}`, "system: chat template: messages, no")
	picky.refuses(t, "/api/generate", `{"prompt":"no"}`, "prompt: chat template: messages, no")

	bare := constrained(t, `{% for m in messages if m.role != 'system' %}{% if not m.content.endswith('a') %}{{ raise_exception('no') }}{% endif %}{{ m.content }}{% endfor %}`)
	bare.refuses(t, "/v1/responses", `{"input":[`+user+","+system+","+user+","+system+","+system+`]}`, "input[3]: chat template: no")
	bare.refuses(t, "/api/chat", `{"messages":[`+system+","+user+`,{"role":"user","content":"b"}]}`, "messages[2]: chat template: no")

	braces := constrained(t, "{query} {answer}")
	braces.refuses(t, "/api/chat", `{"messages":[`+system+","+user+`,{"role":"critic","content":"a"}]}`, `messages[2]: role "critic" is not supported`)
	braces.refuses(t, "/v1/responses", `{"text":{"format":{"type":"json_object"}},"guided_regex":"a","input":"a"}`, "text.format and guided_regex both constrain")
}

// TestRefusedSchemas checks that an error in a schema names the key that has the schema.
func TestRefusedSchemas(t *testing.T) {
	t.Parallel()
	s := constrained(t, plainTemplate+"{# tools #}")
	const bad = `{"type":"object","properties":{"a":{"$ref":"#/b"}}}`
	for _, c := range []struct{ path, body, want string }{
		{"/v1/chat/completions", `{"messages":[` + user + `],"response_format":{"type":"json_schema","json_schema":{"schema":` + bad + `}}}`, "response_format: schema at /properties/a/$ref: "},
		{"/v1/chat/completions", `{"messages":[` + user + `],"guided_json":` + bad + `}`, "guided_json: schema at /properties/a/$ref: "},
		{"/v1/chat/completions", `{"messages":[` + user + `],"guided_regex":"("}`, "guided_regex: "},
		{"/v1/chat/completions", `{"messages":[` + user + `],"tools":[{"function":{"name":"f","strict":true,"parameters":` + bad + `}}],"tool_choice":"required"}`, "tools: schema at /tools/f/properties/a/$ref: "},
		{"/v1/responses", `{"input":"a","text":{"format":{"type":"json_schema","schema":` + bad + `}}}`, "text.format: schema at /properties/a/$ref: "},
		{"/v1/responses", `{"input":"a","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f","strict":true,"parameters":` + bad + `}]}],"tool_choice":"required"}`, "tools: schema at /tools/n__f/properties/a/$ref: "},
		{"/v1/messages", `{"max_tokens":1,"messages":[` + user + `],"output_config":{"format":{"type":"json_schema","schema":` + bad + `}}}`, "output_config.format: schema at /properties/a/$ref: "},
		{"/v1/messages", `{"max_tokens":1,"messages":[` + user + `],"tools":[{"name":"f","strict":true,"input_schema":` + bad + `}],"tool_choice":{"type":"any"}}`, "tools: schema at /tools/f/properties/a/$ref: "},
		{"/api/chat", `{"messages":[` + user + `],"format":` + bad + `}`, "format: schema at /properties/a/$ref: "},
		{"/api/generate", `{"raw":true,"prompt":"a","format":` + bad + `}`, "format: schema at /properties/a/$ref: "},
	} {
		s.refuses(t, c.path, c.body, c.want)
	}
}
