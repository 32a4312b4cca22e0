//go:build unix

package server

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// FuzzRequests reads any bytes as a request: an answer or an error, never a
// panic.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"stop":["a"],"logit_bias":{"3":1.5},"strategy":{"name":"fsd","k":4}}`,
		`{"prompt":[[1,2],[3]],"n":2,"seed":-1,"mirostat":2,"mirostat_tau":1e308,"stream_options":null}`,
		`{"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"tool_choice":{"function":{"name":"f"}},"response_format":{"type":"json_schema","json_schema":{"schema":{}}}}`,
		`{"prompt":"a","strategy":"beam:beams=1e9"}`, `[[[[[[`, `{"a":"\ud800"}`, ``, `null`,
	} {
		f.Add(seed)
	}
	s := &Server{cfg: Config{Manifest: &manifest.Manifest{Vocab: 10, Name: "m"}, Model: "m", Context: 100, Sequences: 4, Defaults: Defaults{EOS: []int32{2}}}}
	f.Fuzz(func(t *testing.T, body string) {
		var c chatRequest
		if readJSON(httptest.NewRequest("POST", "/", strings.NewReader(body)), &c) == nil && s.checkChat(&c) == nil {
			if use, err := s.toolChoice(&c); err == nil {
				responseConstraint(&c, use)
			}
		}
		var p completionRequest
		if readJSON(httptest.NewRequest("POST", "/", strings.NewReader(body)), &p) != nil || s.checkCompletion(&p) != nil {
			return
		}
		if list, err := s.samplers(&p.sampling, nil, nil, 1); err == nil && len(list) != p.choices() {
			t.Errorf("%d samplers for %d choices", len(list), p.choices())
		}
		for _, in := range p.Prompt {
			s.promptIDs(in)
		}
	})
}
