//go:build unix

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/access"
	"github.com/iflowc/iflowc/runtime/http/server"
)

// response is a response, or a part of one.
type response struct {
	ID, Status string
	Output     []map[string]any
	Incomplete *struct{ Reason string } `json:"incomplete_details"`
	Usage      struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
		Parts  struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
	Error struct{ Message string }
}

// outline describes the output of a response without its ids.
func outline(items []map[string]any) (list []string) {
	for _, item := range items {
		line := fmt.Sprint(item["type"], " ", item["status"])
		for _, key := range []string{"summary", "content"} {
			parts, _ := item[key].([]any)
			for _, p := range parts {
				part := p.(map[string]any)
				line += fmt.Sprintf(" %s %s %q", key, part["type"], part["text"])
			}
		}
		for _, key := range []string{"name", "arguments", "input", "encrypted_content"} {
			if v, ok := item[key]; ok {
				line += fmt.Sprintf(" %s %v", key, v)
			}
		}
		list = append(list, line)
	}
	return list
}

// TestResponses checks the output of a response, whole and streamed.
func TestResponses(t *testing.T) {
	t.Parallel()
	s := apis(t)
	base := `{"input":"hi","max_output_tokens":200,` + responsesTools + `,"guided_regex":` + quoted(t, forcedAnswer)
	call := `function_call completed name f arguments {"x": "a"}`
	for keys, want := range map[string][]string{
		``:                                {`reasoning completed content reasoning_text "ab"`, `message completed content output_text "cd"`, call},
		`,"reasoning":{"summary":"auto"}`: {`reasoning completed summary summary_text "ab"`, `message completed content output_text "cd"`, call},
		`,"include":["reasoning.encrypted_content"]`: {`reasoning completed content reasoning_text "ab" encrypted_content YWI=`, `message completed content output_text "cd"`, call},
	} {
		var whole response
		if status, _ := s.post(t, "/v1/responses", base+keys+"}", &whole); status != 200 || whole.Status != "completed" {
			t.Fatalf("%s: status %d, %+v", keys, status, whole)
		}
		if diff := cmp.Diff(want, outline(whole.Output)); diff != "" {
			t.Errorf("%s: %s", keys, diff)
		}
		if u := whole.Usage; u.Input == 0 || u.Parts.Reasoning == 0 || u.Parts.Reasoning >= u.Output {
			t.Errorf("%s: usage %+v", keys, u)
		}
		if diff := cmp.Diff(want, outline(streamedResponse(t, s.stream(t, "/v1/responses", base+keys+`,"stream":true}`)))); diff != "" {
			t.Errorf("%s, streamed: %s", keys, diff)
		}
	}
	var cut response
	if s.post(t, "/v1/responses", `{"input":"hi","max_output_tokens":9,"guided_regex":"a{40}"}`, &cut); cut.Status != "incomplete" || cut.Incomplete.Reason != "max_output_tokens" {
		t.Errorf("cut off: %+v", cut)
	}
}

// streamedResponse checks the order of a response's events and returns its output.
func streamedResponse(t *testing.T, events []apiEvent) []map[string]any {
	t.Helper()
	texts, items := map[string]string{}, map[string]map[string]any{}
	var done []string
	for i, e := range events {
		if e.data["sequence_number"] != float64(i) || e.data["type"] != e.name {
			t.Errorf("event %d: %v", i, e)
		}
		id, _ := e.data["item_id"].(string)
		kind := strings.TrimPrefix(e.name, "response.")
		switch {
		case kind == "output_item.added":
			item := e.data["item"].(map[string]any)
			items[item["id"].(string)] = item
			if e.data["output_index"] != float64(len(items)-1) || item["status"] != "in_progress" {
				t.Errorf("added: %v", e)
			}
		case strings.HasSuffix(kind, ".delta"):
			if items[id] == nil || slices.Contains(done, id) {
				t.Errorf("a delta outside of its item: %v", e)
			}
			texts[id] += e.data["delta"].(string)
		case kind == "output_item.done":
			item := e.data["item"].(map[string]any)
			done = append(done, item["id"].(string))
			line := outline([]map[string]any{item})[0]
			if text := texts[item["id"].(string)]; !strings.Contains(line, text) && !strings.Contains(line, strings.Trim(fmt.Sprintf("%q", text), `"`)) {
				t.Errorf("deltas %q, item %s", text, line)
			}
		}
	}
	if n := len(events); n < 3 || events[0].name != "response.created" || events[1].name != "response.in_progress" || events[n-1].name != "response.completed" {
		t.Fatalf("events: %v", events)
	}
	last := events[len(events)-1].data["response"].(map[string]any)
	var output []map[string]any
	for _, item := range last["output"].([]any) {
		output = append(output, item.(map[string]any))
	}
	if len(done) != len(output) {
		t.Errorf("%d items done, %d in the output", len(done), len(output))
	}
	return output
}

// TestCustomTool checks that a custom tool's input is a text that matches its format.
func TestCustomTool(t *testing.T) {
	t.Parallel()
	s := constrained(t, plainTemplate+"{# tools #}")
	ids := s.tok.Encode(" \n", false)
	noSpace := fmt.Sprintf(`"logit_bias":{"%d":-100,"%d":-100}`, ids[0], ids[1]) // except where a call must contain a space
	body := `{"input":"hi","max_output_tokens":200,` + noSpace + `,"tools":[{"type":"custom","name":"f","format":{"type":"grammar","syntax":"regex","definition":"xyz"}}],"tool_choice":{"type":"custom","name":"f"}`
	want := []string{"custom_tool_call completed name f input xyz"}
	var whole response
	if status, _ := s.post(t, "/v1/responses", body+"}", &whole); status != 200 || !slices.Equal(outline(whole.Output), want) {
		t.Errorf("status %d, %+v", status, whole)
	}
	if got := outline(streamedResponse(t, s.stream(t, "/v1/responses", body+`,"stream":true}`))); !slices.Equal(got, want) {
		t.Errorf("streamed: %v", got)
	}
}

// TestNamespace checks that a call of a function in a namespace has the namespace, and
// that it can be sent back.
func TestNamespace(t *testing.T) {
	t.Parallel()
	s := apis(t)
	force := func(name string) string {
		return `,"guided_regex":` + quoted(t, `<tool_call>\n\{"name": "`+name+`", "arguments": \{\}\}\n</tool_call>`)
	}
	for function, namespace := range map[string]any{"n__f": "n", "f": nil} {
		tools := `"tools":[{"type":"function","name":"f"}]`
		if namespace != nil {
			tools = `"tools":[{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"f"}]}]`
		}
		body := `{"input":"hi","max_output_tokens":200,` + tools + force(function)
		var whole response
		if status, _ := s.post(t, "/v1/responses", body+"}", &whole); status != 200 || len(whole.Output) != 1 {
			t.Fatalf("%s: status %d, %+v", function, status, whole)
		}
		for _, item := range append(whole.Output, streamedResponse(t, s.stream(t, "/v1/responses", body+`,"stream":true}`))...) {
			if item["type"] != "function_call" || item["name"] != "f" || item["namespace"] != namespace {
				t.Errorf("%s: %v", function, item)
			}
		}
		item, err := json.Marshal(whole.Output[0])
		if err != nil {
			t.Fatal(err)
		}
		var count struct{ Error any }
		if status, _ := s.post(t, "/v1/responses/input_tokens", `{"input":[{"role":"user","content":"hi"},`+string(item)+`],`+tools+`}`, &count); status != 200 {
			t.Errorf("%s sent back: status %d, %v", function, status, count.Error)
		}
	}
}

// TestStoredResponses checks that a response continues a stored one as if the request
// contained all items, and that stored responses can be read and deleted.
func TestStoredResponses(t *testing.T) {
	t.Parallel()
	s := apis(t)
	ask := func(keys string) (r response) {
		t.Helper()
		if status, _ := s.post(t, "/v1/responses", `{"max_output_tokens":20,`+keys+`}`, &r); status != 200 {
			t.Fatalf("%s: status %d, %+v", keys, status, r)
		}
		return r
	}
	first := ask(`"input":"hi","instructions":"be","guided_regex":"hello"`)
	message, err := json.Marshal(first.Output[0])
	if err != nil {
		t.Fatal(err)
	}
	next := `{"role":"user","content":"on"}`
	whole := ask(`"input":[{"role":"user","content":"hi"},` + string(message) + `,` + next + `],"temperature":0`)
	for name, keys := range map[string]string{
		"previous":  `"previous_response_id":"` + first.ID + `","input":[` + next + `]`,
		"reference": `"input":[{"role":"user","content":"hi"},{"type":"item_reference","id":"` + first.Output[0]["id"].(string) + `"},` + next + `]`,
	} {
		if got := ask(keys + `,"temperature":0`); got.Usage.Input != whole.Usage.Input || !slices.Equal(outline(got.Output), outline(whole.Output)) {
			t.Errorf("%s: %+v, expected %+v", name, got, whole)
		}
	}
	get := func(method, path string) (status int, body map[string]any) {
		t.Helper()
		req, err := http.NewRequest(method, s.URL+"/v1/responses/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, body
	}
	if status, body := get("GET", first.ID); status != 200 || body["id"] != first.ID || body["status"] != "completed" {
		t.Errorf("read: status %d, %v", status, body)
	}
	if status, body := get("DELETE", first.ID); status != 200 || body["deleted"] != true {
		t.Errorf("delete: status %d, %v", status, body)
	}
	if status, _ := get("GET", first.ID); status != 404 {
		t.Errorf("deleted: status %d", status)
	}
	if hidden := ask(`"input":"hi","store":false`); hidden.ID == "" {
		t.Error("no id")
	} else if status, _ := get("GET", hidden.ID); status != 404 {
		t.Errorf("store false: status %d", status)
	}
}

// as sends a request with a key and returns its status and response.
func (s *service) as(t *testing.T, key, method, path, body string) (status int, r response) {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, r
}

// TestResponseStore checks that stored responses belong to a key, that they expire, and
// that the client with the most bytes loses its oldest ones when the store is full.
func TestResponseStore(t *testing.T) {
	t.Parallel()
	open := func(size int64, keep time.Duration) *service {
		return start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
			c.Access, c.Responses, c.KeepTime = keyed(t, access.Options{}, "one", "two"), size, keep
		})
	}
	s := open(8<<10, time.Hour)
	store := func(key string) string {
		t.Helper()
		status, r := s.as(t, key, "POST", "/v1/responses", `{"input":"hi","max_output_tokens":2}`)
		if status != 200 {
			t.Fatalf("status %d, %+v", status, r)
		}
		return r.ID
	}
	kept := func(key, id string) bool {
		t.Helper()
		status, _ := s.as(t, key, "GET", "/v1/responses/"+id, "")
		if status != 200 && status != 404 {
			t.Errorf("status %d", status)
		}
		return status == 200
	}
	two := store("two")
	if kept("one", two) || !kept("two", two) {
		t.Error("a response does not belong to its key alone")
	}
	if status, r := s.as(t, "one", "POST", "/v1/responses", `{"input":"hi","previous_response_id":"`+two+`"}`); status != 404 {
		t.Errorf("another key's response continued: status %d, %+v", status, r)
	}
	var ones []string
	for range 12 {
		ones = append(ones, store("one"))
	}
	if !kept("two", two) || kept("one", ones[0]) || !kept("one", ones[11]) {
		t.Error("a full store did not drop the oldest response of the client with the most")
	}
	s = open(1<<20, time.Nanosecond)
	if kept("one", store("one")) {
		t.Error("a response did not expire")
	}
	s = open(100, time.Hour)
	if kept("one", store("one")) {
		t.Error("a response larger than the store was kept")
	}
}

// TestInputItems checks the pages of a stored response's input.
func TestInputItems(t *testing.T) {
	t.Parallel()
	s := apis(t)
	var r response
	input := `[{"role":"user","content":"a"},{"id":"msg_b","type":"message","role":"assistant","content":"b"},{"type":"function_call_output","call_id":"c","output":"d"}]`
	if status, _ := s.post(t, "/v1/responses", `{"max_output_tokens":2,"input":`+input+`}`, &r); status != 200 {
		t.Fatalf("status %d, %+v", status, r)
	}
	item := func(n int) string { return fmt.Sprintf("item_%s_%d", strings.TrimPrefix(r.ID, "resp_"), n) }
	for _, c := range []struct {
		query  string
		status int
		ids    []string
		more   bool
	}{
		{"", 200, []string{item(2), "msg_b", item(0)}, false},
		{"?order=asc&limit=2", 200, []string{item(0), "msg_b"}, true},
		{"?order=asc&after=msg_b", 200, []string{item(2)}, false},
		{"?order=asc&after=" + item(2), 200, nil, false},
		{"?after=none", 400, nil, false}, {"?limit=0", 400, nil, false}, {"?limit=101", 400, nil, false}, {"?limit=x", 400, nil, false}, {"?order=up", 400, nil, false},
	} {
		resp, err := http.Get(s.URL + "/v1/responses/" + r.ID + "/input_items" + c.query)
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Data []struct {
				ID, Type, Status, Output string
				Content                  []struct{ Type, Text string }
			}
			First string `json:"first_id"`
			Last  string `json:"last_id"`
			More  bool   `json:"has_more"`
		}
		err = json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		var ids []string
		for _, d := range page.Data {
			ids = append(ids, d.ID)
			if d.Type == "message" && (len(d.Content) != 1 || d.Status != "completed") {
				t.Errorf("%s: %+v", c.query, d)
			}
		}
		if err != nil || resp.StatusCode != c.status || !slices.Equal(ids, c.ids) || page.More != c.more {
			t.Errorf("%q: status %d, %v, %+v, expected %v", c.query, resp.StatusCode, err, page, c.ids)
		} else if len(ids) > 0 && (page.First != ids[0] || page.Last != ids[len(ids)-1]) {
			t.Errorf("%q: from %s to %s, expected %v", c.query, page.First, page.Last, ids)
		}
	}
}
