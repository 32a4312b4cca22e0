//go:build unix

package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
)

// TestShortReference checks a reference to an item by its id alone, and a stored response
// that is asked for as a stream.
func TestShortReference(t *testing.T) {
	t.Parallel()
	s := apis(t)
	var first response
	if status, _ := s.post(t, "/v1/responses", `{"input":"hi","guided_regex":"hello"}`, &first); status != 200 {
		t.Fatalf("status %d, %+v", status, first)
	}
	count := func(item string) (n int) {
		t.Helper()
		var got struct {
			Input int `json:"input_tokens"`
			Error any
		}
		if status, _ := s.post(t, "/v1/responses/input_tokens", `{"input":[`+item+`]}`, &got); status != 200 {
			t.Errorf("%s: status %d, %v", item, status, got.Error)
		}
		return got.Input
	}
	id := fmt.Sprintf(`"id":%q`, first.Output[0]["id"])
	want := count(`{"role":"assistant","content":"hello"}`)
	for _, item := range []string{`{` + id + `}`, `{"type":null,` + id + `}`, `{"type":"item_reference",` + id + `}`} {
		if got := count(item); got != want {
			t.Errorf("%s: %d tokens, expected %d", item, got, want)
		}
	}
	s.refuses(t, "/v1/responses", `{"input":[{"id":"msg_none"}]}`, `input[0]: there is no stored item "msg_none"`)
	for query, want := range map[string]int{"?stream=true": 400, "?stream=false": 200} {
		resp, err := http.Get(s.URL + "/v1/responses/" + first.ID + query)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want || !json.Valid(body) {
			t.Errorf("%s: status %d, %v, %s", query, resp.StatusCode, err, body)
		}
	}
}
