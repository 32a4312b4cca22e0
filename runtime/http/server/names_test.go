//go:build unix

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
)

// TestModelNames checks under which names requests reach the model.
func TestModelNames(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		c.Model, c.Aliases = "Small", []string{"Small", "gpt-4o", "org/tiny", "llama:latest"}
	})
	for name, want := range map[string]int{
		"": 200, "default": 200, "fake": 200, "Small": 200, "small": 200, "FAKE": 200, "gpt-4o": 200, "GPT-4o:latest": 200, "openai/gpt-4o": 200,
		"litellm_proxy/openai/gpt-4o": 200, "org/tiny": 200, "hosted_vllm/Org/Tiny": 200, "llama": 200, "ollama/llama:latest": 200,
		"tiny": 404, "gpt-4": 404, "gpt-4o/": 404, "/": 404, "gpt-4o/other": 404, ":latest": 404, "llama:7b": 404, "openai/": 404,
	} {
		var got completion
		if status, _ := s.post(t, "/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":"a","max_tokens":1}`, name), &got); status != want {
			t.Errorf("%q: status %d, expected %d: %+v", name, status, want, got.Error)
		} else if want == 200 && got.Model != "Small" {
			t.Errorf("%q: the answer is of %q", name, got.Model)
		}
	}
	var list struct{ Data []struct{ ID string } }
	resp, err := http.Get(s.URL + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	if want := []string{"Small", "gpt-4o", "org/tiny", "llama:latest"}; !slices.Equal(names, want) {
		t.Errorf("models %q, expected %q", names, want)
	}
}
