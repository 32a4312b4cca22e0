//go:build unix

package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/access"
	"github.com/iflowc/iflowc/runtime/http/server"
)

// operatorKeys are the keys O of an operator and U of a user.
var operatorKeys = access.Options{Load: func() ([]access.Key, error) {
	return access.Parse("keys", []byte("- {name: op, key: O, operator: true}\n- {name: user, key: U}\n"))
}}

// An adapted is a service with adapters of 1,000 bytes, of which at most three fit.
type adapted struct {
	*service
	dir string
}

// startAdapted starts a service with the keys O and U. Its folder has the adapters sql, law
// and med, and a file bad.
func startAdapted(t *testing.T) *adapted {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"sql", "law", "med"} {
		devicetest.WriteAdapter(t, filepath.Join(dir, name), 1)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, func(c *server.Config, _ *scheduler.Options, eo *engine.Options) {
		c.Access, c.Model, c.Aliases = controlled(t, operatorKeys), "Base", []string{"org/tiny"}
		c.Adapters = server.AdapterOptions{Dir: dir, Open: func(path string) (*lora.Adapter, int64, error) {
			a, err := lora.Open(path)
			return a, 1000, err
		}}
		eo.AdapterBytes = 3000
	})
	return &adapted{s, dir}
}

// send sends a request with a key and returns the status and the body.
func (s *adapted) send(t testing.TB, key, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// load loads an adapter.
func (s *adapted) load(t testing.TB, name, path string) {
	t.Helper()
	status, body := s.send(t, "O", "POST", "/v1/load_lora_adapter", fmt.Sprintf(`{"lora_name":%q,"lora_path":%q}`, name, path))
	if want := fmt.Sprintf("Success: LoRA adapter '%s' added successfully.", name); status != 200 || body != want {
		t.Fatalf("load %s: %d %s", name, status, body)
	}
}

// replace loads an adapter again: its own file in place, or law's after an unload. While
// requests hold the versions before, it waits for memory.
func (s *adapted) replace(t testing.TB, name string, inPlace bool) {
	t.Helper()
	path := name
	if !inPlace {
		s.unload(t, name)
		path = "law"
	}
	for {
		status, body := s.send(t, "O", "POST", "/v1/load_lora_adapter", fmt.Sprintf(`{"lora_name":%q,"lora_path":%q,"load_inplace":%t}`, name, path, inPlace))
		if status == 200 {
			return
		}
		if status != http.StatusInsufficientStorage {
			t.Fatalf("in place %t: %d %s", inPlace, status, body)
		}
	}
}

func (s *adapted) unload(t testing.TB, name string) {
	t.Helper()
	status, body := s.send(t, "O", "POST", "/v1/unload_lora_adapter", fmt.Sprintf(`{"lora_name":%q,"lora_int_id":1}`, name))
	if want := fmt.Sprintf("Success: LoRA adapter '%s' removed successfully.", name); status != 200 || body != want {
		t.Fatalf("unload %s: %d %s", name, status, body)
	}
}

// greedyWith returns the greedy continuation of a prompt with the n-th loaded adapter.
func (s *adapted) greedyWith(load int, prompt string, n int) string {
	ids := devicetest.GreedyWith(load, s.tok.Encode(prompt, true), n, salt)
	if at := slices.Index(ids, devicetest.EOS); at >= 0 {
		ids = ids[:at]
	}
	return s.tok.Decode(ids, true)
}

// TestAdapterSelection checks that requests of every API select an adapter by the model's
// name, and that answers name it.
func TestAdapterSelection(t *testing.T) {
	t.Parallel()
	s := startAdapted(t)
	s.load(t, "sql", "sql")
	s.load(t, "org/law", filepath.Join(s.dir, "law"))
	for name, want := range map[string]struct {
		load  int
		model string
	}{
		"": {0, "Base"}, "base": {0, "Base"}, "org/tiny": {0, "Base"}, "sql": {1, "sql"}, "SQL:latest": {1, "sql"}, "openai/sql": {1, "sql"},
		"org/law": {2, "org/law"}, "hosted_vllm/org/law": {2, "org/law"},
	} {
		var got completion
		status, body := s.send(t, "U", "POST", "/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":"abc","max_tokens":8,"temperature":0}`, name))
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || got.Model != want.model || got.Choices[0].Text != s.greedyWith(want.load, "abc", 8) {
			t.Errorf("%q: %d %s, expected %q of %q", name, status, body, s.greedyWith(want.load, "abc", 8), want.model)
		}
	}
	chat := s.greedyWith(1, "uabc.A", 8)
	for _, c := range []struct{ path, body, text string }{
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"abc"}],"max_tokens":8,"temperature":0`, chat},
		{"/v1/responses", `"input":"abc","max_output_tokens":8,"temperature":0`, chat},
		{"/v1/messages", `"messages":[{"role":"user","content":"abc"}],"max_tokens":8,"temperature":0`, chat},
		{"/api/chat", `"messages":[{"role":"user","content":"abc"}],"stream":false,"options":{"num_predict":8,"temperature":0}`, chat},
		{"/api/generate", `"prompt":"abc","raw":true,"stream":false,"options":{"num_predict":8,"temperature":0}`, s.greedyWith(1, "abc", 8)},
		{"/v1/completions", `"prompt":["abc","abc"],"n":2,"max_tokens":8,"temperature":0`, s.greedyWith(1, "abc", 8)},
	} {
		status, body := s.send(t, "U", "POST", c.path, `{"model":"sql",`+c.body+`}`)
		text, _ := json.Marshal(c.text)
		if status != 200 || !strings.Contains(body, string(text)) || !strings.Contains(body, `"model":"sql"`) {
			t.Errorf("%s: %d %s, expected %s", c.path, status, body, text)
		}
	}
	if status, body := s.send(t, "U", "POST", "/v1/completions", `{"model":"med","prompt":"a"}`); status != 404 || !strings.Contains(body, "the adapters of GET /v1/models (2)") {
		t.Errorf("an unknown name: %d %s", status, body)
	}
	if _, text := s.send(t, "U", "GET", "/metrics", ""); !strings.Contains(text, `iflowc_lora_requests_total{adapter="org/law"} 2`) || !strings.Contains(text, "iflowc_lora_adapters 2") || !strings.Contains(text, "iflowc_lora_bytes 2000") {
		t.Errorf("metrics: %s", text)
	}
	s.listed(t)
	s.unload(t, "sql")
	s.unload(t, "ORG/law")
}

// listed checks the lists of models while sql and org/law are loaded.
func (s *adapted) listed(t *testing.T) {
	t.Helper()
	for _, c := range []struct{ key, path, body string }{
		{"U", "/v1/models", `"id":"sql","object":"model"`}, {"U", "/v1/models", `"parent":"Base"`}, {"O", "/v1/models", `"root":"` + filepath.Join(s.dir, "law") + `"`},
		{"U", "/v1/models/org/law", `"id":"org/law","object":"model"`}, {"U", "/props", `"adapters":[{"bytes":1000,"name":"sql"},{"bytes":1000,"name":"org/law"}]`},
		{"U", "/api/tags", `"name":"org/law:latest","model":"org/law:latest"`}, {"U", "/api/ps", `"parent_model":"Base:latest"`},
	} {
		if status, body := s.send(t, c.key, "GET", c.path, ""); status != 200 || !strings.Contains(body, c.body) || c.key == "U" && strings.Contains(body, s.dir) {
			t.Errorf("%s: %d %s, expected %s", c.path, status, body, c.body)
		}
	}
	if status, body := s.send(t, "U", "POST", "/api/show", `{"model":"sql"}`); status != 200 || !strings.Contains(body, `"modelfile":"FROM Base\nADAPTER sql"`) {
		t.Errorf("show: %d %s", status, body)
	}
}

// TestAdapterRefusals checks who may load what from where.
func TestAdapterRefusals(t *testing.T) {
	t.Parallel()
	s := startAdapted(t)
	outside := t.TempDir()
	for name, target := range map[string]string{"out": outside, "etc": "/etc/passwd", "in": "sql"} {
		if err := os.Symlink(target, filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(s.dir, "folder"), 0o700), os.Symlink("/etc/passwd", filepath.Join(s.dir, "folder", "adapter_model.safetensors"))); err != nil {
		t.Fatal(err)
	}
	s.load(t, "in", "in") // a link inside
	const load, unload = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
	for _, c := range []struct {
		key, path, body string
		status          int
		want            string
	}{
		{"U", load, `{"lora_name":"a","lora_path":"sql"}`, 403, "operator: true"}, {"U", unload, `{"lora_name":"in"}`, 403, "operator: true"}, {"", load, `{}`, 401, "API key"},
		{"O", load, `{"lora_path":"sql"}`, 400, "lora_name and lora_path: expected both"}, {"O", load, `{"lora_name":"a"}`, 400, `"param":"lora_path"`},
		{"O", load, `{"lora_name":"base","lora_path":"sql"}`, 400, "already the name"}, {"O", load, `{"lora_name":"org/Tiny","lora_path":"sql"}`, 400, "already the name"}, {"O", load, `{"lora_name":"default:latest","lora_path":"sql"}`, 400, "already the name"},
		{"O", load, `{"lora_name":"a\nb","lora_path":"sql"}`, 400, "control characters"}, {"O", load, `{"lora_name":":latest","lora_path":"sql"}`, 400, "needs a name"},
		{"O", load, `{"lora_name":"a","lora_path":"../sql"}`, 400, "expected a path in the folder"}, {"O", load, `{"lora_name":"a","lora_path":"x/../../sql"}`, 400, "expected a path in the folder"},
		{"O", load, `{"lora_name":"a","lora_path":"/etc/passwd"}`, 400, "expected a path in the folder"}, {"O", load, `{"lora_name":"a","lora_path":"etc"}`, 400, "is not in the folder"}, {"O", load, `{"lora_name":"a","lora_path":"out"}`, 400, "is not in the folder"},
		{"O", load, `{"lora_name":"a","lora_path":"folder"}`, 400, "is a link out of the folder"}, {"O", load, `{"lora_name":"a","lora_path":"sql\u0000"}`, 400, "control characters"},
		{"O", load, `{"lora_name":"a","lora_path":"none"}`, 404, "there is no adapter"}, {"O", load, `{"lora_name":"a","lora_path":"bad"}`, 400, "lora_path: "},
		{"O", load, `{"lora_name":"IN","lora_path":"sql"}`, 400, "set load_inplace to true"}, {"O", unload, `{}`, 400, "lora_name: expected"}, {"O", unload, `{"lora_name":"sql"}`, 404, "is not loaded"}, {"O", unload, `{"lora_name":"base"}`, 404, "is not loaded"},
	} {
		if status, body := s.send(t, c.key, "POST", c.path, c.body); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s, expected %d %s", c.path, c.body, status, body, c.status, c.want)
		}
	}
	s.load(t, "sql", "sql")
	s.load(t, "law", "law")
	if status, body := s.send(t, "O", "POST", load, `{"lora_name":"med","lora_path":"med"}`); status != 507 || !strings.Contains(body, "--lora-memory") {
		t.Errorf("beyond the memory: %d %s", status, body)
	}
	s.unload(t, "law")
	if status, body := s.send(t, "O", "POST", load, `{"lora_name":"SQL","lora_path":"med","load_inplace":true}`); status != 200 {
		t.Errorf("in place: %d %s", status, body)
	}
	if status, body := s.send(t, "U", "POST", "/v1/completions", `{"model":"sql","prompt":"abc","max_tokens":8,"temperature":0}`); status != 200 || !strings.Contains(body, `"model":"SQL"`) || !strings.Contains(body, s.greedyWith(4, "abc", 8)) {
		t.Errorf("after it was replaced: %d %s", status, body)
	}
}

// TestNoAdapterFolder checks that a service without --lora-dir loads nothing.
func TestNoAdapterFolder(t *testing.T) {
	t.Parallel()
	s := &adapted{service: start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		c.Access = controlled(t, operatorKeys)
	})}
	if status, body := s.send(t, "O", "POST", "/v1/load_lora_adapter", `{"lora_name":"a","lora_path":"b"}`); status != 403 || !strings.Contains(body, "--lora-dir") {
		t.Errorf("%d %s", status, body)
	}
}

// TestUnloadWhileRunning unloads and replaces adapters while requests run: each request
// gets the answer of the adapter that it began with, or status 404.
func TestUnloadWhileRunning(t *testing.T) {
	t.Parallel()
	s := startAdapted(t)
	s.load(t, "sql", "sql")
	answers := map[string]bool{} // of all loads
	for load := 1; load <= 30; load++ {
		answers[s.greedyWith(load, "abc", 20)] = true
	}
	base := s.greedyWith(0, "abc", 20)
	var wg sync.WaitGroup
	done := make(chan struct{})
	for i := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				model := []string{"base", "sql"}[(i+n)%2]
				var got completion
				status, body := s.send(t, "U", "POST", "/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":["abc","abc"],"max_tokens":20,"temperature":0}`, model))
				if model == "sql" && status == 404 {
					continue
				}
				if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 {
					t.Errorf("%s: %d %s", model, status, body)
					return
				}
				first, second := got.Choices[0].Text, got.Choices[1].Text
				if first != second || model == "base" && first != base || model == "sql" && !answers[first] {
					t.Errorf("%s: answers %q and %q", model, first, second)
				}
			}
		})
	}
	for load := 2; load <= 30; load++ {
		s.replace(t, "sql", load%2 == 1)
		time.Sleep(5 * time.Millisecond)
	}
	close(done)
	wg.Wait()
	s.unload(t, "sql")
	for range 100 { // freed between two steps
		if _, text := s.send(t, "U", "GET", "/metrics", ""); strings.Contains(text, "iflowc_lora_adapters 0\n") && strings.Contains(text, "iflowc_lora_bytes 0\n") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("adapters are left")
}

// TestAdapterNames checks CheckAdapterName.
func TestAdapterNames(t *testing.T) {
	t.Parallel()
	taken := []string{"Base", "org/tiny:latest"}
	for name, ok := range map[string]bool{
		"sql": true, "org/sql": true, "sql v2": true, "größe": true, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false, "": false, ":latest": false, "a\x7f": false, "a\u200bb": false, "a\tb": false, "base": false, "base:latest": false, "ORG/tiny": false, "tiny": true,
	} {
		if err := server.CheckAdapterName(name, taken); (err == nil) != ok {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}
