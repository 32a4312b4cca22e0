//go:build unix

package server_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// around are valid values of the lists and objects that fields are in, by the endpoint, or
// for all.
var around = map[string]string{
	"messages[]": `{"role":"user","content":"a"}`, "tools[]": `{"type":"function","function":{"name":"f"}}`, "messages tools[]": `{"name":"f"}`, "responses tools[]": `{"type":"function","name":"f"}`,
	"messages[].tool_calls[]": `{"function":{"name":"f","arguments":{}}}`, "messages[].content[]": `{"type":"text","text":"a"}`, "input[]": `{"role":"user","content":"a"}`,
	"input[].content[]": `{"type":"input_text","text":"a"}`, "response_format": `{"type":"text"}`, "stream_options": `{"include_usage":true}`, "input_extra[]": `{"text":"a"}`, "thinking": `{"type":"enabled"}`,
	"output_config.format": `{"type":"json_schema","schema":{}}`, "output_format": `{"type":"json_schema","schema":{}}`, "text.format": `{"type":"text"}`, "tool_choice": `{"type":"auto"}`, "tools[].format": `{"type":"text"}`,
}

// put sets the value at a path of fields in an object, and what is around it. A nil value
// removes it.
func put(o map[string]any, endpoint, at, path string, value any) {
	name, rest, more := strings.Cut(path, ".")
	key, isList := strings.CutSuffix(name, "[]")
	if at += name; !more {
		if value == nil {
			delete(o, key)
		} else {
			o[key] = value
		}
		return
	}
	list, _ := o[key].([]any)
	inner, _ := o[key].(map[string]any)
	if len(list) > 0 {
		inner, _ = list[0].(map[string]any)
	}
	if inner == nil {
		text, ok := around[endpoint+" "+at]
		if !ok {
			if text, ok = around[at]; !ok {
				text = "{}"
			}
		}
		json.Unmarshal([]byte(text), &inner)
	}
	put(inner, endpoint, at+".", rest, value)
	if o[key] = inner; isList {
		o[key] = []any{inner}
	}
}

// has reports whether an object has a value at a path of fields, or what is around one has.
func has(o map[string]any, endpoint, path string) bool {
	at, name := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		at, name = path[:i], path[i+1:]
	}
	var inner map[string]any
	if json.Unmarshal([]byte(cmp.Or(around[endpoint+" "+at], around[at])), &inner); at == "" {
		inner = o
	}
	_, ok := inner[strings.TrimSuffix(name, "[]")]
	return ok
}

// TestNullFields checks that a field that is null is as one that is left out, for all
// fields of the table. Optional ones of the same object are null in the same request.
func TestNullFields(t *testing.T) {
	t.Parallel()
	s := constrained(t, plainTemplate)
	handler := s.handlers(t)
	answer := func(endpoint string, fields []string, value any) (status int, message string) {
		var body map[string]any
		if err := json.Unmarshal([]byte("{"+endpointPaths[endpoint].body+"}"), &body); err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			put(body, endpoint, "", f, value)
		}
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		path, w := endpointPaths[endpoint].path, httptest.NewRecorder()
		handler(path).ServeHTTP(w, httptest.NewRequest("POST", path, bytes.NewReader(data)))
		return w.Code, refusal(w.Body.Bytes())
	}
	type group struct{ endpoint, around, required string }
	groups := map[group][]string{}
	for _, r := range fieldRows(t) {
		for _, e := range r.endpoints {
			var body map[string]any
			if err := json.Unmarshal([]byte("{"+endpointPaths[e].body+"}"), &body); err != nil {
				t.Fatal(err)
			}
			for _, f := range r.fields {
				g := group{e, f[:max(0, strings.LastIndexByte(f, '.'))], ""}
				if has(body, e, f) {
					g.required = f
				}
				groups[g] = append(groups[g], f)
			}
		}
	}
	for g, fields := range groups {
		status, message := answer(g.endpoint, fields, json.RawMessage("null"))
		without, missing := answer(g.endpoint, fields, nil)
		if status != without || message != missing {
			t.Errorf("%v of %s: null %d %.150q, left out %d %.150q", fields, g.endpoint, status, message, without, missing)
		}
	}
}
