//go:build unix

package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/access"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// TestManyPrompts checks that a request with more prompts than the queue has room for
// is answered in order, also as a stream.
func TestManyPrompts(t *testing.T) {
	t.Parallel()
	s := start(t, func(_ *server.Config, o *scheduler.Options, _ *engine.Options) { o.Queue = 2 })
	const n = 50
	prompts := make([]string, n)
	for i := range prompts {
		prompts[i] = fmt.Sprintf("%q", strings.Repeat("ab", i%7+1))
	}
	body := fmt.Sprintf(`{"prompt":[%s],"max_tokens":3,"temperature":0,"ignore_eos":true`, strings.Join(prompts, ","))
	var out struct {
		Choices []struct {
			Index int
			Text  string
		}
	}
	if status, _ := s.post(t, "/v1/completions", body+"}", &out); status != 200 || len(out.Choices) != n {
		t.Fatalf("status %d, %d choices", status, len(out.Choices))
	}
	texts := make([]string, n)
	for i, c := range out.Choices {
		if c.Index != i || c.Text != out.Choices[i%7].Text {
			t.Errorf("choice %d: index %d, %q, as that to the same prompt %q", i, c.Index, c.Text, out.Choices[i%7].Text)
		}
	}
	for _, e := range s.events(t, "/v1/completions", body+`,"stream":true}`) {
		for _, c := range e["choices"].([]any) {
			c := c.(map[string]any)
			texts[int(c["index"].(float64))] += c["text"].(string)
		}
	}
	for i, text := range texts {
		if text != out.Choices[i].Text {
			t.Errorf("stream of prompt %d: %q, whole %q", i, text, out.Choices[i].Text)
		}
	}
}

// TestPrefixesOfOthers checks that cached_tokens does not reveal prompts of other keys
// or of another salt.
func TestPrefixesOfOthers(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		c.Access = controlled(t, access.Options{Registry: c.Registry, Load: func() ([]access.Key, error) {
			return access.Parse("keys", []byte("- {name: a, key: A}\n- {name: b, key: B}\n"))
		}})
	})
	prompt := strings.Repeat("abc", 60)
	for i, c := range []struct {
		key, salt string
		reused    bool
	}{{"A", "", false}, {"B", "", false}, {"A", "", true}, {"A", "x", false}, {"B", "x", false}, {"A", "x", true}} {
		body := fmt.Sprintf(`{"prompt":%q,"max_tokens":1,"cache_salt":%q}`, prompt, c.salt)
		req, err := http.NewRequest("POST", s.URL+"/v1/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+c.key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var out completion
		err = json.NewDecoder(resp.Body).Decode(&out)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || out.Usage.Details.Cached > 0 != c.reused {
			t.Errorf("request %d of key %s with salt %q: status %d, %d tokens reused (%v)", i, c.key, c.salt, resp.StatusCode, out.Usage.Details.Cached, err)
		}
	}
}

// TestGrammarsOfOthers checks that grammars are cached for a key alone.
func TestGrammarsOfOthers(t *testing.T) {
	t.Parallel()
	for share, want := range map[bool]string{false: "[a b a]", true: "[  ]"} {
		var scopes []string
		s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
			c.SharePrefixes = share
			c.Constrain = func(c server.Constraint) (decode.Mask, error) {
				scopes = append(scopes, c.Scope)
				return nil, errors.New("no mask")
			}
			c.Access = controlled(t, access.Options{Registry: c.Registry, Load: func() ([]access.Key, error) {
				return access.Parse("keys", []byte("- {name: a, key: A}\n- {name: b, key: B}\n"))
			}})
		})
		for _, key := range []string{"A", "B", "A"} {
			req, err := http.NewRequest("POST", s.URL+"/v1/completions", strings.NewReader(`{"prompt":"a","guided_regex":"a"}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+key)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		if got := fmt.Sprint(scopes); got != want {
			t.Errorf("shared %v: scopes %s, expected %s", share, got, want)
		}
	}
}

// TestLongPrompts checks that texts that exceed the context are refused by their length
// or at the first token too many.
func TestLongPrompts(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, n := range []int{512, 513, 100_000} {
		text := strings.Repeat("a", n)
		for path, body := range map[string]string{
			"/v1/completions":      `{"prompt":"` + text + `"}`,
			"/v1/chat/completions": `{"messages":[{"role":"user","content":"` + text + `"}]}`,
		} {
			if status, code, _ := s.ask(t, "POST", path, body); status != 400 || code != "context_length_exceeded" {
				t.Errorf("%s with %d characters: %d %s", path, n, status, code)
			}
		}
	}
}
