//go:build unix

package server_test

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
)

const oneMessage = `{"messages":[{"role":"user","content":"a"}]`

var deepJSON = strings.Repeat("[", 5000) + strings.Repeat("]", 5000)

// wrongRequests are invalid requests with the expected status and parameter of the
// error.
var wrongRequests = []struct {
	path, body, param string
	status            int
}{
	{"/v1/chat/completions", ``, "", 400},
	{"/v1/chat/completions", `{`, "", 400},
	{"/v1/chat/completions", `[]`, "", 400},
	{"/v1/chat/completions", "{\"a\":\"\xff\"}", "", 400},
	{"/v1/chat/completions", deepJSON, "", 400},
	{"/v1/chat/completions", `{"messages":` + deepJSON + `}`, "", 400},
	{"/v1/chat/completions", `{"messages":"` + strings.Repeat("x", 20000) + `"}`, "", 413},
	{"/v1/chat/completions", `{}`, "messages", 400},
	{"/v1/chat/completions", `{"messages":[{"content":"a"}]}`, "messages", 400},
	{"/v1/chat/completions", oneMessage + `,"model":"other"}`, "model", 404},
	{"/v1/chat/completions", oneMessage + `,"max_tokens":"a"}`, "max_tokens", 400},
	{"/v1/chat/completions", oneMessage + `,"seed":"a"}`, "seed", 400},
	{"/v1/chat/completions", oneMessage + `,"max_tokens":-1}`, "max_tokens", 400},
	{"/v1/chat/completions", oneMessage + `,"temperature":-0.1}`, "temperature", 400},
	{"/v1/chat/completions", oneMessage + `,"top_p":1.5}`, "top_p", 400},
	{"/v1/chat/completions", oneMessage + `,"n":1000}`, "n", 400},
	{"/v1/chat/completions", oneMessage + `,"n":5}`, "n", 400},
	{"/v1/chat/completions", oneMessage + `,"stop":7}`, "stop", 400},
	{"/v1/chat/completions", oneMessage + `,"stop":[""]}`, "stop", 400},
	{"/v1/chat/completions", oneMessage + `,"logit_bias":{"x":1}}`, "logit_bias", 400},
	{"/v1/chat/completions", oneMessage + `,"logit_bias":{"61":1}}`, "logit_bias", 400},
	{"/v1/chat/completions", oneMessage + `,"strategy":"best"}`, "strategy", 400},
	{"/v1/chat/completions", oneMessage + `,"strategy":{"a":1}}`, "strategy", 400},
	{"/v1/chat/completions", oneMessage + `,"mirostat":3}`, "mirostat", 400},
	{"/v1/chat/completions", oneMessage + `,"top_logprobs":3}`, "top_logprobs", 400},
	{"/v1/chat/completions", oneMessage + `,"response_format":{"type":"x"}}`, "response_format", 400},
	{"/v1/chat/completions", oneMessage + `,"response_format":{"type":"json_object"}}`, "response_format", 400},
	{"/v1/chat/completions", oneMessage + `,"tool_choice":"required"}`, "tool_choice", 400},
	{"/v1/chat/completions", oneMessage + `,"tools":[{"type":"x"}]}`, "tools", 400},
	{"/v1/chat/completions", oneMessage + `,"stream_options":{"include_usage":true}}`, "stream_options", 400},
	{"/v1/completions", `{}`, "prompt", 400},
	{"/v1/completions", `{"prompt":""}`, "prompt", 400},
	{"/v1/completions", `{"prompt":{"a":1}}`, "prompt", 400},
	{"/v1/completions", `{"prompt":[1,61]}`, "prompt", 400},
	{"/v1/completions", `{"prompt":[-1]}`, "prompt", 400},
	{"/v1/completions", `{"prompt":"a","stop_token_ids":[61],"min_tokens":2}`, "stop_token_ids", 400},
	{"/v1/completions", `{"prompt":"a","bad_words_ids":[[1],[-1]]}`, "bad_words_ids", 400},
	{"/v1/completions", `{"prompt":"a","best_of":3}`, "best_of", 400},
	{"/v1/completions", `{"prompt":"a","suffix":"b"}`, "suffix", 400},
	{"/v1/completions", `{"prompt":"a","logprobs":50}`, "logprobs", 400},
	{"/v1/completions", `{"prompt":"` + strings.Repeat("a", 600) + `"}`, "prompt", 400},
	{"/v1/embeddings", `{"input":"a"}`, "model", 400},
	{"/translate", `{"text":"a"}`, "", 400},
	{"/fill", `{"text":"a"}`, "", 400},
	{"/tokenize", `{}`, "content", 400},
	{"/detokenize", `{"tokens":[61]}`, "tokens", 400},
	{"/detokenize", `{"ids":[-1]}`, "tokens", 400},
	{"/nowhere", `{}`, "", 404},
	{"/v1/../../etc/passwd", `{}`, "", 404},
	{"/health", `{}`, "", 405},
}

// TestErrors checks the status and the parameter of the error for invalid requests.
func TestErrors(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) { c.Body = 20000 })
	for _, c := range wrongRequests {
		var got completion
		status, header := s.post(t, c.path, c.body, &got)
		if status != c.status || got.Error == nil || got.Error.Type != "invalid_request_error" || got.Error.Message == "" {
			t.Errorf("%s %.60s: status %d, %+v", c.path, c.body, status, got.Error)
			continue
		}
		if param := got.Error.Param; param == nil && c.param != "" || param != nil && *param != c.param {
			t.Errorf("%s %.60s: param %v, expected %q (%s)", c.path, c.body, param, c.param, got.Error.Message)
		}
		if header.Get("X-Request-Id") == "" {
			t.Errorf("%s: no request id", c.path)
		}
	}
}
