//go:build unix

package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/text/chat"
	"github.com/iflowc/iflowc/runtime/text/grammar"
)

// TestExtremeFields checks that values at the end of a range are accepted and that
// those beyond it are refused with a message that names the key.
func TestExtremeFields(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, c := range []struct {
		keys   string
		status int
		param  string
	}{
		{`"temperature":1e-320`, 200, ""}, {`"temperature":-0.0`, 200, ""}, {`"temperature":100`, 200, ""}, {`"temperature":1e308`, 400, "temperature"},
		{`"top_k":1073741824`, 200, ""}, {`"top_k":9223372036854775807`, 400, "top_k"}, {`"top_k":-1`, 200, ""}, {`"top_k":-2`, 400, "top_k"}, {`"top_k":1e30`, 400, "top_k"},
		{`"top_p":0`, 200, ""}, {`"top_p":5e-324`, 200, ""}, {`"top_p":1.0000001`, 400, "top_p"},
		{`"min_p":1`, 200, ""}, {`"min_p":5e-324`, 200, ""}, {`"min_p":1e6`, 400, "min_p"},
		{`"tfs_z":1e-300`, 200, ""}, {`"tfs_z":-1e-300`, 400, "tfs_z"}, {`"typical_p":1e-300`, 200, ""}, {`"typical_p":2`, 400, "typical_p"},
		{`"mirostat":1,"mirostat_tau":0,"mirostat_eta":100`, 200, ""}, {`"mirostat":2,"mirostat_tau":100,"mirostat_eta":0`, 200, ""},
		{`"mirostat":2,"mirostat_tau":1e308`, 400, "mirostat_tau"}, {`"mirostat":2,"mirostat_eta":-1`, 400, "mirostat_eta"}, {`"mirostat":2,"strategy":"fsd"`, 400, "strategy"},
		{`"repetition_penalty":100`, 200, ""}, {`"repetition_penalty":0.01`, 200, ""}, {`"repetition_penalty":1e300`, 400, "repetition_penalty"}, {`"repeat_penalty":1e-300`, 400, "repeat_penalty"},
		{`"repeat_last_n":64`, 200, ""}, {`"repeat_last_n":64,"repeat_penalty":1.1`, 200, ""}, {`"repeat_last_n":0,"repeat_penalty":1.1`, 200, ""}, {`"repeat_last_n":-2`, 400, "repeat_last_n"},
		{`"max_tokens":2.0`, 200, ""}, {`"top_k":4e1,"seed":7.0`, 200, ""}, {`"top_k":0.5`, 400, "top_k"},
		{`"seed":-9223372036854775808`, 200, ""}, {`"seed":9223372036854775808`, 400, "seed"},
		{`"min_tokens":3`, 400, "min_tokens"}, {`"min_tokens":2`, 200, ""}, {`"min_tokens":9223372036854775807`, 400, "min_tokens"},
		{`"strategy":"fsd:n=1000000"`, 400, "strategy"}, {`"strategy":{"name":"fsd","n":8}`, 200, ""}, {`"strategy":"beam:beams=1e9"`, 400, "strategy"},
		{`"strategy":"mirostat1:m=1,pool_size=1000000"`, 200, ""}, {`"strategy":"typical:pool_size=1e6"`, 400, "strategy"}, {`"strategy":"beam:beams=2,length_penalty=100"`, 200, ""},
		{`"frequency_penalty":2.1`, 400, "frequency_penalty"}, {`"presence_penalty":-1e308`, 400, "presence_penalty"},
		{`"no_repeat_ngram_size":33`, 400, "no_repeat_ngram_size"}, {`"bad_words_ids":[[]]`, 400, "bad_words_ids"},
	} {
		var got completion
		begun := time.Now()
		status, _ := s.post(t, "/v1/completions", `{"prompt":"Hello","max_tokens":2,`+c.keys+`}`, &got)
		if status != c.status {
			t.Errorf("%s: status %d, expected %d: %+v", c.keys, status, c.status, got.Error)
		} else if status != 200 && (got.Error.Param == nil || *got.Error.Param != c.param || !strings.Contains(got.Error.Message, c.param)) {
			t.Errorf("%s: %+v, expected the parameter %s", c.keys, got.Error, c.param)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s took %v", c.keys, took)
		}
	}
	bad := make([]string, devicetest.Vocab) // all tokens are forbidden
	for i := range bad {
		bad[i] = fmt.Sprintf("[%d]", i)
	}
	var got completion
	if status, _ := s.post(t, "/v1/completions", `{"prompt":"a","ignore_eos":true,"bad_words_ids":[`+strings.Join(bad, ",")+`]}`, &got); status != 400 {
		t.Errorf("nothing allowed: status %d, %+v", status, got.Error)
	}
}

// TestTinyTemperature checks that a tiny temperature is greedy.
func TestTinyTemperature(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, keys := range []string{`"temperature":1e-320`, `"temperature":1e-6`, `"top_p":0`, `"top_k":1`} {
		var got completion
		if status, _ := s.post(t, "/v1/completions", `{"prompt":"Hello","max_tokens":9,`+keys+`}`, &got); status != 200 || got.Choices[0].Text != s.greedy("Hello", 9) {
			t.Errorf("%s: status %d, %+v, expected %q", keys, status, got, s.greedy("Hello", 9))
		}
	}
}

// lengths embeds a text as its length.
type lengths struct{}

func (lengths) Tokens(prompt, text string, ids []int32) ([]int32, error) {
	if ids != nil {
		return ids, nil
	}
	if prompt != "" && prompt != "query" {
		return nil, fmt.Errorf("no prompt %q", prompt)
	}
	return make([]int32, len(prompt+text)), nil
}

func (lengths) Embed(_ context.Context, _ scheduler.Job, tokens []int32) ([]float32, error) {
	return []float32{float32(len(tokens)), 1, 0, 0}, nil
}

// constrained starts a service with tokens that spell JSON, and with token masks.
func constrained(t testing.TB, source string) *service {
	return constrainedOver(t, source, "abcdefghijklmnoprstuvwxyz{}[]\":,<>_/ĠĊ-")
}

// constrainedOver starts one with tokens of the alphabet, and with added ones.
func constrainedOver(t testing.TB, source, alphabet string, added ...string) *service {
	tok := tokensOf(t, alphabet, added...)
	template, err := chat.Parse(source, chat.TokensOf(tok))
	if err != nil {
		t.Fatal(err)
	}
	const vocab = devicetest.NaNID // without the token that makes the fake model's logits NaN
	maker := grammar.NewMaker(vocab, tok.Bytes, []int32{devicetest.EOS})
	format := template.CallFormat()
	return start(t, func(c *server.Config, o *scheduler.Options, e *engine.Options) {
		e.Draft, c.Drafter = 6, draftsGreedy
		m := *c.Manifest
		m.Vocab, o.Vocab = vocab, vocab
		c.Manifest, c.Tokenizer, c.Template, c.Embedder = &m, tok, template, lengths{}
		c.Reranker = letterReranker{tok, false}
		c.Fill = func(context.Context, scheduler.Job, string, int) ([]server.Mask, error) { return nil, nil }
		c.Constrain = func(f server.Constraint) (m decode.Mask, err error) {
			switch f.Kind {
			case "json_object":
				m, err = maker.Object()
			case "json_schema":
				m, err = maker.Schema(f.Schema)
			case "regex":
				m, err = maker.Regex(f.Text)
			case "grammar":
				m, err = maker.GBNF(f.Text)
			case "tool":
				m, err = maker.Call(format, []grammar.Tool{{Name: f.Tools[0].Name, Parameters: f.Tools[0].Parameters, Strict: f.Tools[0].Strict}}, f.Schema)
			}
			if err != nil {
				return nil, err
			}
			return m, nil
		}
	})
}

// handlers returns the handler for a path: that of an encoder-decoder for /translate,
// that of a model with tokens for infilling for /infill, and one for an operator for
// adapters.
func (s *service) handlers(t testing.TB) func(path string) http.Handler {
	all := map[string]http.Handler{}
	for path, edit := range map[string]func(*server.Config){
		"": func(*server.Config) {},
		"/translate": func(c *server.Config) {
			c.Translate = func(context.Context, scheduler.Job, server.Translation) ([][]server.Translated, error) {
				return nil, nil
			}
		},
		"/infill": func(c *server.Config) { c.Tokenizer = infillLetters(t) },
	} {
		cfg := withoutCounts(s.cfg)
		edit(&cfg)
		all[path] = server.New(cfg).Handler()
	}
	operated := withoutCounts(s.cfg)
	operated.Access = controlled(t, operatorKeys)
	operated.Adapters = server.AdapterOptions{Dir: t.TempDir(), Open: func(string) (*lora.Adapter, int64, error) { return nil, 0, errors.New("no adapter") }}
	operator := server.New(operated).Handler()
	return func(path string) http.Handler {
		if strings.HasSuffix(path, "_lora_adapter") {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Set("X-Api-Key", "O")
				operator.ServeHTTP(w, r)
			})
		}
		if h, ok := all[path]; ok {
			return h
		}
		return all[""]
	}
}

const plainTemplate = "{% for m in messages %}{{ m.role[0] }}{{ m.content }}.{% endfor %}{% if add_generation_prompt %}a{% endif %}"

// TestConstraintSpellings checks that every key for a constraint works and that two
// constraints are refused.
func TestConstraintSpellings(t *testing.T) {
	t.Parallel()
	s := constrained(t, plainTemplate)
	const schema = `{"enum":["yes"]}`
	quoted, _ := json.Marshal(schema)
	spellings := []string{
		`"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":` + schema + `}}`,
		`"response_format":{"type":"json_schema","schema":` + schema + `}`,
		`"response_format":{"type":"json_object","schema":` + schema + `}`,
		`"structured_outputs":{"json":` + schema + `}`, `"structured_outputs":{"json":` + string(quoted) + `}`, `"structured_outputs":{"regex":"\"yes\""}`,
		`"structured_outputs":{"choice":["\"yes\""]}`, `"structured_outputs":{"grammar":"root ::= \"\\\"yes\\\"\""}`,
		`"guided_json":` + schema, `"guided_json":` + string(quoted) + `,"guided_decoding_backend":"xgrammar"`, `"guided_regex":"\"yes\""`,
		`"guided_choice":["\"yes\""]`, `"guided_grammar":"root ::= \"\\\"yes\\\"\""`, `"grammar":"root ::= \"\\\"yes\\\"\""`, `"json_schema":` + schema,
	}
	ask := func(path, keys string) (int, completion) {
		var got completion
		input := `"prompt":"a"`
		if strings.Contains(path, "chat") {
			input = `"messages":[{"role":"user","content":"a"}]`
		}
		status, _ := s.post(t, path, `{`+input+`,"max_tokens":30,`+keys+`}`, &got)
		return status, got
	}
	for i, keys := range spellings {
		for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
			status, got := ask(path, keys)
			if status != 200 || got.Choices[0].Message.Content+got.Choices[0].Text != `"yes"` {
				t.Errorf("%s %s: status %d, %+v", path, keys, status, got)
			}
		}
		other := spellings[(i+5)%len(spellings)]
		if strings.SplitN(other, `"`, 3)[1] != strings.SplitN(keys, `"`, 3)[1] {
			if status, got := ask("/v1/completions", keys+","+other); status != 400 || !strings.Contains(got.Error.Message, "leave one out") {
				t.Errorf("%s, %s: status %d, %+v", keys, other, status, got.Error)
			}
		}
	}
	for _, keys := range []string{
		`"structured_outputs":{"structural_tag":"{}"}`, `"structured_outputs":{"json":true,"regex":"a"}`, `"structured_outputs":{"whitespace_pattern":" ?"}`,
		`"structured_outputs":{"json":{},"disable_any_whitespace":true}`, `"structured_outputs":{"disable_additional_properties":true}`, `"structural_tag":{}`,
		`"guided_whitespace_pattern":""`, `"guided_json":"{"`, `"guided_choice":[]`, `"response_format":{"type":"structural_tag"}`, `"grammar":"root ::= \"a\"","grammar_lazy":true`,
		`"grammar_triggers":[{"type":1,"value":"a"}]`,
	} {
		if status, got := ask("/v1/completions", keys); status != 400 || got.Error.Param == nil {
			t.Errorf("%s: status %d, %+v", keys, status, got.Error)
		}
	}
	for _, keys := range []string{`"guided_json":null`, `"guided_regex":""`, `"response_format":{"type":"text"}`, `"structured_outputs":{"json_object":false}`, `"structured_outputs":null,"grammar_lazy":false`} {
		if status, got := ask("/v1/completions", keys); status != 200 {
			t.Errorf("%s: status %d, %+v", keys, status, got.Error)
		}
	}
}

// TestUnsupported checks that keys that would change the answer are refused unless
// neutral, and that others are ignored.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for path, input := range map[string]string{"/v1/chat/completions": `"messages":[{"role":"user","content":"a"}]`, "/v1/completions": `"prompt":"a"`} {
		for keys, status := range map[string]int{
			`"xtc_probability":0.5`: 400, `"xtc_probability":0`: 200, `"xtc_probability":0.0,"dry_multiplier":null,"dry_base":1.75,"samplers":[ ]`: 200,
			`"top_n_sigma":-1.0`: 200, `"top_n_sigma":1`: 400, `"truncate_prompt_tokens":5`: 400, `"n_predict":7`: 400, `"allowed_token_ids":[5]`: 400,
			`"logits_processors":["a"]`: 400, `"use_beam_search":true`: 400, `"length_penalty":1.0,"use_beam_search":false`: 200, `"include_stop_str_in_output":true`: 400,
			`"user":"a","metadata":{"a":"b"},"store":true,"service_tier":"auto","unheard_of":[1]`: 200, `"id_slot":3,"cache_prompt":true`: 200,
		} {
			var got completion
			if have, _ := s.post(t, path, `{`+input+`,"max_tokens":1,`+keys+`}`, &got); have != status {
				t.Errorf("%s %s: status %d, %+v", path, keys, have, got.Error)
			}
		}
	}
}

// TestGenericTools checks that tools are described in a message if the template does
// not support them, and that calls are parsed and can be required.
func TestGenericTools(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"enum":["a"]}},"required":["x"],"additionalProperties":false}}}]`
	const call = `<tool_call>\\n\\{\"name\": \"f\", \"arguments\": \\{\"x\": \"a\"\\}\\}\\n</tool_call>`
	for name, source := range map[string]string{
		"plain": plainTemplate, "no system": `{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ m.content }}.{% endfor %}`, "braces": "{query} {answer}",
	} {
		s := constrained(t, source)
		ids := s.tok.Encode(" \n", false)
		noSpace := fmt.Sprintf(`"logit_bias":{"%d":-100,"%d":-100}`, ids[0], ids[1]) // except where a call must contain a space
		ask := func(keys string) (c struct {
			Choices []struct {
				Finish  string `json:"finish_reason"`
				Message struct {
					Content string
					Calls   []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
			Usage struct {
				Prompt int `json:"prompt_tokens"`
			}
			Error any
		}) {
			if status, _ := s.post(t, "/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"max_tokens":80,`+noSpace+keys+`}`, &c); status != 200 {
				t.Fatalf("%s %s: status %d, %v", name, keys, status, c.Error)
			}
			return c
		}
		plain := ask("")
		for _, keys := range []string{`,"tool_choice":"required",` + tools, `,"guided_regex":"` + call + `",` + tools} {
			c := ask(keys)
			calls := c.Choices[0].Message.Calls
			if len(calls) != 1 || calls[0].Function.Name != "f" || strings.Join(strings.Fields(calls[0].Function.Arguments), "") != `{"x":"a"}` || c.Choices[0].Finish != "tool_calls" {
				t.Errorf("%s %s: %+v", name, keys, c)
			}
			if c.Usage.Prompt < plain.Usage.Prompt+200 {
				t.Errorf("%s: a prompt of %d tokens does not describe the tools", name, c.Usage.Prompt)
			}
		}
		if none := ask(`,"tool_choice":"none",` + tools); none.Usage.Prompt != plain.Usage.Prompt {
			t.Errorf("%s: tool_choice none: %d tokens, expected %d", name, none.Usage.Prompt, plain.Usage.Prompt)
		}
	}
}

// TestCallFormats checks that a call can be required in formats other than JSON, and
// that its arguments become JSON.
func TestCallFormats(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"s":{"enum":["a<b"]},"n":{"const":10},"l":{"const":["x",true,null]}},"required":["s","n","l"],"additionalProperties":false}}}]`
	for _, sign := range []string{"<tool_call>\n<function=f>\n<parameter=x>", "<|tool_calls_section_begin|>", "<|tool_call_start|>", "[ARGS]", "<arg_key>"} {
		s := constrainedOver(t, plainTemplate+"{% if tools %}"+sign+"{% endif %}", "abcdefgiklmnoprstuvxyNTACLOGRS01{}[]()\":,<>|=._/ĠĊ")
		var c struct {
			Choices []struct {
				Finish  string `json:"finish_reason"`
				Message struct {
					Calls []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
		}
		status, _ := s.post(t, "/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}],"tool_choice":"required",`+tools+`}`, &c)
		if status != 200 || len(c.Choices) != 1 || len(c.Choices[0].Message.Calls) != 1 {
			t.Errorf("%s: status %d, %+v", sign, status, c)
			continue
		}
		call := c.Choices[0].Message.Calls[0].Function
		if got := strings.Join(strings.Fields(call.Arguments), ""); call.Name != "f" || got != `{"s":"a<b","n":10,"l":["x",true,null]}` || c.Choices[0].Finish != "tool_calls" {
			t.Errorf("%s: %+v", sign, c)
		}
	}
}

// TestClientTemplates checks that rendering a client's template takes little time.
func TestClientTemplates(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for name, source := range map[string]string{
		"loops":     `{% for a in range(1000000) %}{% for b in range(1000000) %}x{% endfor %}{% endfor %}`,
		"doubling":  `{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}{% for i in range(64) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}`,
		"recursion": `{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}`,
		"sorting":   `{% for i in range(10000) %}{{ range(9999) | sort | join }}{% endfor %}`,
		"replace":   `{% set ns = namespace(x='a') %}{% for i in range(64) %}{% set ns.x = ns.x | replace('a', 'aa') %}{% endfor %}{{ ns.x }}`,
		"large":     strings.Repeat("x", 1<<15),
	} {
		body, err := json.Marshal(map[string]any{"text": "a", "decoder_input_template": source + "{{ 'a' }}"})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		var got struct{ Message string }
		if status, _ := s.post(t, "/inferflow", string(body), &got); status != 400 || got.Message == "" {
			t.Errorf("%s: status %d, %q", name, status, got.Message)
		}
		took := time.Since(begun)
		t.Logf("%s: %v, %s", name, took, got.Message)
		if took > 20*time.Second { // without limits, hours
			t.Errorf("%s: took %v", name, took)
		}
	}
}
