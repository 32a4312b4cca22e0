//go:build unix

package server_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	randomRequests = flag.Int("requests", 500, "how many requests TestRandomRequests sends")
	randomSeed     = flag.Uint64("requests-seed", 1, "seed of its requests")
)

// slowest is the maximum time of a request, on a busy machine.
const slowest = 20 * time.Second

// usualValues are typical values of each key, as JSON.
var usualValues = map[string][]string{
	"prompt": {`"Hello"`, `["a","b"]`, `[5,6,7]`, `[[5],[6,7]]`, `""`}, "messages": {
		`[{"role":"user","content":"hi"}]`, `[{"role":"system","content":"be"},{"role":"user","content":[{"type":"text","text":"hi"}]}]`,
		`[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"b"}]`,
		`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]`, `[]`,
		`[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"b","signature":""},{"type":"tool_use","id":"1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"c"}]}]`,
		`[{"role":"user","content":"a"},{"role":"assistant","content":"","thinking":"b","tool_calls":[{"function":{"name":"f","arguments":{}}}]},{"role":"tool","tool_name":"f","content":"c"}]`,
	},
	"input": {`"a"`, `["a"]`, `[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"b"}]},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"c"}]`}, "content": {`"a b"`}, "tokens": {`[5,6]`}, "system_prompt": {`"b"`}, "res_prefix": {`"c"`},
	"model": {`"fake"`, `"default"`, `"other"`}, "max_tokens": {"0", "1", "3", "7"}, "max_completion_tokens": {"2"}, "max_output_len": {"3"}, "max_new_tokens": {"2"},
	"stream": {"true", "false"}, "is_streaming_mode": {"true"}, "stream_options": {`{"include_usage":true}`, "null"}, "n": {"1", "2", "4"}, "logprobs": {"true", "0", "3"}, "top_logprobs": {"2", "20"},
	"echo": {"true"}, "best_of": {"1"}, "suffix": {`"a"`}, "temperature": {"0", "0.7", "1", "2"}, "top_p": {"0.9", "1", "0"}, "top_k": {"40", "-1", "1"}, "min_p": {"0.05"}, "typical_p": {"0.9"}, "tfs_z": {"0.95"},
	"mirostat": {"0", "1", "2"}, "mirostat_tau": {"5"}, "mirostat_eta": {"0.1"}, "frequency_penalty": {"0.5"}, "presence_penalty": {"-0.5"}, "repetition_penalty": {"1.1"}, "repeat_penalty": {"1.2"}, "repeat_last_n": {"64"},
	"strategy": {`"fsd"`, `"fsd:n=8,k=50"`, `{"name":"mirostat1","tau":3}`, `"beam:beams=2"`, `"typical"`, `"min_p:min_p=0.2"`, `"tfs"`, `"random_fsd"`}, "decoding_alg": {`"sample.top_p"`, `{"name":"fsd","k":4}`},
	"no_repeat_ngram_size": {"2"}, "bad_words_ids": {"[[5],[6,7]]"}, "logit_bias": {`{"5":1.5}`, `{"7":-100}`}, "seed": {"7", "-1"}, "random_seed": {"7"}, "stop": {`"a"`, `["b","cd"]`, "null"},
	"stop_token_ids": {"[5]"}, "ignore_eos": {"true"}, "min_tokens": {"1"}, "speculate": {`"none"`, `"lookup"`}, "draft_accept": {`"match"`, `"rejection"`, `"top"`, `"typical"`}, "priority": {"1"}, "user": {`"u"`}, "cache_salt": {`"s"`},
	"response_format": {`{"type":"text"}`, `{"type":"json_object"}`, `{"type":"json_schema","json_schema":{"schema":{"enum":["a",1]}}}`}, "structured_outputs": {`{"choice":["a","b"]}`, `{"regex":"[a-c]+"}`, `{"json":{}}`},
	"guided_json": {`{"type":"integer"}`, `"{}"`}, "guided_regex": {`"a|b"`}, "guided_choice": {`["a","bc"]`}, "guided_grammar": {`"root ::= \"a\""`}, "grammar": {`"root ::= [a-c]+"`}, "json_schema": {`{"type":"boolean"}`},
	"tools": {`[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"x":{"type":"boolean"}}}}}]`}, "tool_choice": {`"auto"`, `"required"`, `"none"`, `{"type":"function","function":{"name":"f"}}`},
	"parallel_tool_calls": {"false"}, "chat_template_kwargs": {`{"enable_thinking":false}`}, "reasoning_effort": {`"low"`}, "documents": {`[{"text":"a"}]`, `["a","b"]`, `"a"`}, "continue_final_message": {"true"}, "add_generation_prompt": {"false"},
	"decoder_input_template": {`"{query}{answer}"`, `"{% for m in messages %}{{ m.content }}{% endfor %}"`, `"{{"`}, "encoder_input_template": {`"{query}"`}, "header": {`{"fn":"get_stat"}`, `{"fn":"process_query"}`},
	"xtc_probability": {"0.5", "0"}, "dry_multiplier": {"0"}, "allowed_token_ids": {"[5]"}, "use_beam_search": {"false"}, "dimensions": {"4"}, "encoding_format": {`"base64"`}, "with_pieces": {"true"}, "add_special": {"false"},
	"ids": {"[5,2]"}, "skip_special": {"true"}, "src": {`"en"`}, "tgt": {`"de"`}, "beams": {"2"}, "best": {"1"}, "forced_bos": {"5"}, "encoder_ids": {"[[5]]"}, "metadata": {`{"a":"b"}`},
	"query": {`"a"`}, "top_n": {"1", "3"}, "return_documents": {"false"}, "text_1": {`"a"`, `["a","b"]`}, "text_2": {`"b"`, `["a","b"]`},
	"max_tokens_per_doc": {"9"}, "input_prefix": {`"a"`, `""`}, "input_suffix": {`"b"`, `""`}, "input_extra": {`[{"filename":"a","text":"b"}]`, `[{"text":"c"},{"text":"d"}]`}, "n_predict": {"3", "-1", "0"},
	"n_indent": {"2"}, "t_max_predict_ms": {"1"}, "samplers": {`["top_k","infill"]`}, "response_fields": {`["content","timings/prompt_n"]`}, "unheard_of": {"1"},
	"max_output_tokens": {"3", "0"}, "instructions": {`"be"`}, "previous_response_id": {`"resp_0"`, `""`}, "store": {"false", "true"}, "text": {`"a"`, `["a","b"]`, `{"format":{"type":"json_object"}}`, `{"format":{"type":"json_schema","name":"a","schema":{"type":"boolean"}}}`},
	"reasoning": {`{"effort":"low","summary":"auto"}`, `{}`}, "include": {`["reasoning.encrypted_content"]`, `["message.output_text.logprobs"]`}, "system": {`"be"`, `[{"type":"text","text":"be","cache_control":{"type":"ephemeral"}}]`},
	"stop_sequences": {`["a"]`}, "thinking": {`{"type":"enabled","budget_tokens":1024}`, `{"type":"disabled"}`}, "output_config": {`{"effort":"low"}`, `{"format":{"type":"json_schema","schema":{"enum":["a"]}}}`},
	"options": {`{"num_predict":3}`, `{"num_predict":2,"temperature":0,"stop":["a"],"num_ctx":128}`, `{}`}, "format": {`"json"`, `{"enum":["a"]}`, `""`}, "think": {"true", "false", `"low"`}, "keep_alive": {`"5m"`, "0"}, "raw": {"true"}, "name": {`"fake"`},
}

// nastyValues are values for any key.
var nastyValues = []string{
	"null", "true", "0", "-0.0", "-1", "1e-320", "5e-324", "1e308", "1e999", "-1e308", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "2147483648", "0.1", "1000000",
	`""`, `"\u0000"`, `"\ud800"`, `"é漢🙂\u202e"`, `"<|im_end|></s>"`, `[]`, `{}`, `[[]]`, `[null]`, `[""]`, `[-1]`, `[[1,-1]]`, `[1e9]`, `{"":null}`, `{"type":7}`, `{"name":"fsd","n":1e6}`,
	`{"a":{"b":{"c":[[[{}]]]}}}`, `"` + strings.Repeat("x", 3000) + `"`, `[` + strings.Repeat("5,", 3000) + `5]`, nested(90, "[", "", "]"), nested(500, `{"a":`, "1", "}"), `{"5":1e308}`, `{"99999":1}`, `"beam:beams=64"`, `"fsd:n="`,
}

// usualKeys are the endpoints with their required keys.
var usualKeys = map[string][]string{
	"/v1/chat/completions": {"messages"}, "/v1/completions": {"prompt"}, "/v1/embeddings": {"input"}, "/tokenize": {"content"}, "/detokenize": {"tokens"},
	"/infill": {"input_prefix", "input_suffix"}, "/apply-template": {"messages"}, "/v1/rerank": {"query", "documents"}, "/v1/score": {"text_1", "text_2"},
	"/v1/responses": {"input"}, "/v1/responses/input_tokens": {"input"}, "/v1/messages": {"messages", "max_tokens"}, "/v1/messages/count_tokens": {"messages"},
	"/api/chat": {"messages", "options"}, "/api/generate": {"prompt", "options"}, "/api/show": {"model"}, "/translate": {"text"}, "/fill": {"text"}, "/inferflow": {"text"}, "/": {"text"},
}

// randomRequest returns a request that is mostly valid, with some invalid values and
// sometimes with changed bytes.
func randomRequest(r *rand.Rand) (path, body string) {
	path = pick(r, slices.Sorted(maps.Keys(usualKeys)))
	if r.IntN(2) == 0 {
		path = pick(r, []string{"/v1/chat/completions", "/v1/completions"})
	}
	keys, all := usualKeys[path], slices.Sorted(maps.Keys(usualValues))
	if r.IntN(8) > 0 {
		keys = append(slices.Clone(keys), "max_tokens")
	}
	for range r.IntN(4) {
		keys = append(keys, pick(r, all))
	}
	r.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	var parts []string
	for _, key := range keys {
		value := pick(r, usualValues[key])
		switch r.IntN(20) {
		case 0:
			value = pick(r, nastyValues)
		case 1:
			value = pick(r, usualValues[pick(r, all)])
		}
		parts = append(parts, fmt.Sprintf("%q:%s", key, value))
	}
	data := []byte("{" + strings.Join(parts, ",") + "}")
	if r.IntN(8) == 0 {
		for range 1 + r.IntN(3) {
			at := r.IntN(len(data))
			switch r.IntN(3) {
			case 0:
				data[at] = byte(r.IntN(256))
			case 1:
				data = slices.Delete(data, at, min(len(data), at+1+r.IntN(5)))
			default:
				data = slices.Insert(data, at, []byte(pick(r, nastyValues))...)
			}
			if len(data) == 0 {
				break
			}
		}
	}
	return path, string(data)
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// handleRequest sends a request to a handler and returns what is wrong with the
// response.
func handleRequest(h http.Handler, path, body string) (status int, wrong string) {
	begun := time.Now()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
	took := time.Since(begun)
	switch {
	case took > slowest:
		return w.Code, fmt.Sprintf("it took %v", took)
	case w.Code == 200 && strings.Contains(w.Body.String(), `"type":"server_error"`):
		return w.Code, "an error of the service in a stream"
	case w.Code == 200:
		return w.Code, ""
	case w.Code < 400 || w.Code >= 500:
		return w.Code, w.Body.String()
	case refusal(w.Body.Bytes()) == "":
		return w.Code, "a refusal without a message"
	}
	return w.Code, ""
}

// TestRandomRequests sends random requests: each is answered or refused, without server
// errors. Use -args -requests N to send more.
func TestRandomRequests(t *testing.T) {
	t.Parallel()
	s := constrained(t, plainTemplate)
	handler := s.handlers(t)
	var lock sync.Mutex
	counts := map[string]map[int]int{}
	var wait sync.WaitGroup
	const workers = 4
	for worker := range workers {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(*randomSeed, uint64(worker)))
			for range (*randomRequests + workers - 1) / workers {
				path, body := randomRequest(r)
				status, wrong := handleRequest(handler(path), path, body)
				lock.Lock()
				if counts[path] == nil {
					counts[path] = map[int]int{}
				}
				counts[path][status]++
				lock.Unlock()
				if wrong != "" {
					t.Errorf("%s %.2000s: status %d: %s", path, body, status, wrong)
				}
			}
		})
	}
	wait.Wait()
	for _, path := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-22s %v", path, counts[path])
	}
}

// FuzzRequests sends any bytes to any endpoint and expects an answer or a refusal, but
// no server error.
func FuzzRequests(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		path, body := randomRequest(r)
		f.Add(path, body)
	}
	for _, body := range []string{`[[[[[[`, `{"a":"\ud800"}`, ``, `null`, `{"prompt":"a","strategy":"beam:beams=1e9"}`} {
		f.Add("/v1/completions", body)
	}
	s := constrained(f, plainTemplate)
	handler := s.handlers(f)
	f.Fuzz(func(t *testing.T, path, body string) {
		if _, ok := usualKeys[path]; !ok {
			path = "/v1/completions"
		}
		if status, wrong := handleRequest(handler(path), path, body); wrong != "" {
			t.Errorf("status %d: %s", status, wrong)
		}
	})
}
