//go:build unix

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/http/server"
)

// A fieldRow is a row of the table in docs/security.md.
type fieldRow struct {
	endpoints, fields []string
	status            int    // status beyond the bound; 0: there is no bound
	message           string // prefix of the error message; KEY stands for the field
}

// fieldRows parses the table.
func fieldRows(t *testing.T) (rows []fieldRow) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "## Request fields\n")
	if !ok {
		t.Fatal("docs/security.md has no section on request fields")
	}
	answer := regexp.MustCompile("^([0-9]{3}) `([^`]+)`")
	for line := range strings.SplitSeq(table, "\n") {
		if strings.HasPrefix(line, "## ") {
			break
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		r := fieldRow{endpoints: strings.Split(cells[0], ", ")}
		for f := range strings.SplitSeq(cells[1], ", ") {
			r.fields = append(r.fields, strings.Trim(f, "`"))
		}
		if m := answer.FindStringSubmatch(cells[3]); m != nil {
			r.message = m[2]
			if r.status, err = strconv.Atoi(m[1]); err != nil {
				t.Fatal(err)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// TestFieldTable checks that the table contains exactly the fields of all requests.
func TestFieldTable(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, r := range fieldRows(t) {
		for _, e := range r.endpoints {
			for _, f := range r.fields {
				if listed[e+" "+f] {
					t.Errorf("%s of %s has two rows", f, e)
				}
				listed[e+" "+f] = true
			}
		}
	}
	for e, list := range server.RequestFields() {
		for _, f := range list {
			if !listed[e+" "+f.Name] {
				t.Errorf("docs/security.md, Request fields: no row for %s of %s", f.Name, e)
			}
			delete(listed, e+" "+f.Name)
		}
	}
	for f := range listed {
		t.Errorf("docs/security.md, Request fields: there is no field %s", f)
	}
}

// endpointPaths are the endpoints with a valid request.
var endpointPaths = map[string]struct{ path, body string }{
	"chat":        {"/v1/chat/completions", `"messages":[{"role":"user","content":"a"}],"max_tokens":1`},
	"completions": {"/v1/completions", `"prompt":"a","max_tokens":1`},
	"embeddings":  {"/v1/embeddings", `"input":"a"`},
	"infill":      {"/infill", `"input_prefix":"a","input_suffix":"b","n_predict":1`},
	"rerank":      {"/v1/rerank", `"query":"a","documents":["b"]`},
	"score":       {"/v1/score", `"text_1":"a","text_2":"b"`},
	"tokenize":    {"/tokenize", `"content":"a"`},
	"detokenize":  {"/detokenize", `"tokens":[5]`},
	"translate":   {"/translate", `"text":"a"`},
	"fill":        {"/fill", `"text":"a"`},
	"inferflow":   {"/inferflow", `"text":"a","max_new_tokens":1`},
}

// list returns a JSON list of n equal values.
func list(n int, value string) string {
	return "[" + strings.Repeat(value+",", n-1) + value + "]"
}

// text returns a JSON string of n bytes.
func text(n int) string { return `"` + strings.Repeat("x", n) + `"` }

// overBounds are values beyond the bound of a field, with the endpoint if endpoints
// differ.
var overBounds = map[string]string{
	"priority": `"priority":101`, "user": `"user":` + text(257), "cache_salt": `"cache_salt":` + text(257), "model": `"model":"other"`,
	"temperature": `"temperature":101`, "top_p": `"top_p":1.1`, "top_k": `"top_k":-2`, "fill top_k": `"top_k":1001`, "min_p": `"min_p":-1`, "typical_p": `"typical_p":2`, "tfs_z": `"tfs_z":2`,
	"repeat_last_n": `"repeat_last_n":64,"repeat_penalty":2`, "mirostat": `"mirostat":3`, "mirostat_tau": `"mirostat_tau":101`, "mirostat_eta": `"mirostat_eta":101`,
	"strategy": `"strategy":` + text(1100), "decoding_alg": `"decoding_alg":"fsd:n=9"`, "frequency_penalty": `"frequency_penalty":3`, "presence_penalty": `"presence_penalty":3`,
	"repetition_penalty": `"repetition_penalty":101`, "repeat_penalty": `"repeat_penalty":101`, "no_repeat_ngram_size": `"no_repeat_ngram_size":33`,
	"bad_words_ids": `"bad_words_ids":` + list(1025, "[5]"), "logit_bias": `"logit_bias":{"61":1}`, "seed": `"seed":18446744073709551616`, "random_seed": `"random_seed":18446744073709551616`,
	"stop": `"stop":` + list(17, `"a"`), "stop_token_ids": `"stop_token_ids":` + list(129, "5"), "ignore_eos": `"ignore_eos":1`, "min_tokens": `"min_tokens":-1`, "n": `"n":129`,
	"speculate": `"speculate":` + text(300), "draft_accept": `"draft_accept":` + text(300),
	"response_format": `"response_format":{"type":"json_object","a":` + text(300_000) + `}`, "response_format.type": `"response_format":{"type":"x"}`,
	"response_format.schema":      `"response_format":{"type":"json_schema","schema":null}`,
	"response_format.json_schema": `"response_format":{"type":"json_schema"}`, "response_format.json_schema.schema": `"response_format":{"type":"json_schema","json_schema":{}}`,
	"structured_outputs": `"structured_outputs":7`, "structured_outputs.json": `"structured_outputs":{"json":` + text(300_000) + `}`, "structured_outputs.regex": `"structured_outputs":{"regex":` + text(70_000) + `}`,
	"structured_outputs.choice": `"structured_outputs":{"choice":[]}`, "structured_outputs.grammar": `"structured_outputs":{"grammar":` + text(70_000) + `}`, "structured_outputs.json_object": `"structured_outputs":{"json_object":1}`,
	"structured_outputs.structural_tag": `"structured_outputs":{"structural_tag":{}}`, "structured_outputs.whitespace_pattern": `"structured_outputs":{"whitespace_pattern":""}`,
	"structured_outputs.disable_any_whitespace": `"structured_outputs":{"disable_any_whitespace":true}`, "structured_outputs.disable_additional_properties": `"structured_outputs":{"disable_additional_properties":true}`,
	"guided_json": `"guided_json":"{"`, "json_schema": `"json_schema":"{"`, "guided_regex": `"guided_regex":` + text(70_000), "guided_choice": `"guided_choice":[]`, "guided_grammar": `"guided_grammar":` + text(70_000),
	"grammar": `"grammar":` + text(70_000), "structural_tag": `"structural_tag":{}`, "guided_whitespace_pattern": `"guided_whitespace_pattern":" "`, "guided_decoding_backend": `"guided_decoding_backend":7`,
	"messages": `"messages":` + list(4097, `{"role":"user","content":"a"}`), "messages[].role": `"messages":[{"role":` + text(65) + `}]`, "messages[].content": `"messages":[{"role":"user","content":[{"type":"image_url"}]}]`,
	"messages[].name": `"messages":[{"role":"user","content":"a","name":` + text(257) + `}]`, "messages[].tool_call_id": `"messages":[{"role":"tool","content":"a","tool_call_id":` + text(257) + `}]`,
	"messages[].tool_calls": `"messages":[{"role":"assistant","tool_calls":` + list(129, `{"function":{"name":"f","arguments":"{}"}}`) + `}]`,
	"max_tokens":            `"max_tokens":-1`, "max_completion_tokens": `"max_completion_tokens":-1`, "max_output_len": `"max_output_len":-1,"max_new_tokens":null`, "max_new_tokens": `"max_new_tokens":-1`, "stream": `"stream":1`,
	"stream_options": `"stream_options":{}`, "stream_options.include_usage": `"stream":true,"stream_options":{"include_usage":7}`, "chat logprobs": `"logprobs":2`, "completions logprobs": `"logprobs":21`, "top_logprobs": `"top_logprobs":21`,
	"tools": `"tools":` + list(129, `{"function":{"name":"f"}}`), "tools[].type": `"tools":[{"type":"x","function":{"name":"f"}}]`, "tools[].function": `"tools":[{"type":"function"}]`,
	"tools[].function.name": `"tools":[{"function":{"name":` + text(65) + `}}]`, "tools[].function.parameters": `"tools":[{"function":{"name":"f","parameters":{"a":` + text(300_000) + `}}}]`,
	"tool_choice": `"tool_choice":` + text(1100), "functions": `"functions":[{"name":"f"}]`, "parallel_tool_calls": `"parallel_tool_calls":1`, "chat_template_kwargs": `"chat_template_kwargs":{"a":` + text(17_000) + `}`,
	"reasoning_effort": `"reasoning_effort":` + text(65), "documents": `"documents":` + list(4097, "{}"), "continue_final_message": `"continue_final_message":1`, "add_generation_prompt": `"add_generation_prompt":1`,
	"prompt": `"prompt":` + list(257, `"a"`), "suffix": `"suffix":"a"`, "echo": `"echo":1`, "best_of": `"best_of":3`,
	"input": `"input":` + list(2049, `"a"`), "encoding_format": `"encoding_format":"x"`, "dimensions": `"dimensions":0`, "prompt_name": `"prompt_name":"other"`,
	"input_prefix": `"input_prefix":null`, "input_suffix": `"input_suffix":null`, "input_extra": `"input_extra":` + list(257, `{"text":"a"}`), "input_extra[].filename": `"input_extra":[{"filename":` + text(257) + `}]`,
	"input_extra[].text": `"input_extra":[{"text":7}]`, "infill prompt": `"prompt":7`, "infill max_tokens": `"n_predict":null,"max_tokens":-2`, "n_predict": `"n_predict":-2`, "n_indent": `"n_indent":-1`,
	"t_max_predict_ms": `"t_max_predict_ms":-2`, "samplers": `"samplers":7`, "response_fields": `"response_fields":` + list(65, `"a"`),
	"query": `"query":""`, "rerank documents": `"documents":` + list(2049, `"a"`), "top_n": `"top_n":-1`, "max_tokens_per_doc": `"max_tokens_per_doc":0`, "rerank truncate_prompt_tokens": `"truncate_prompt_tokens":513`, "score truncate_prompt_tokens": `"truncate_prompt_tokens":0`, "return_documents": `"return_documents":7`, "text_1": `"text_1":["a","b"]`, "text_2": `"text_2":` + list(2049, `"a"`),
	"content": `"content":` + text(262145), "tokenize prompt": `"content":null,"prompt":` + text(262145), "add_special": `"add_special":7`, "with_pieces": `"with_pieces":7`, "tokens": `"tokens":[61]`, "ids": `"ids":[61]`, "skip_special": `"skip_special":7`,
	"translate text": `"text":` + list(257, `"a"`), "text": `"text":7`, "encoder_ids": `"encoder_ids":[[61]]`, "src": `"src":` + text(65), "tgt": `"tgt":` + text(65), "beams": `"beams":5`, "best": `"best":5`, "forced_bos": `"forced_bos":61`,
	"header": `"header":7`, "header.fn": `"header":{"fn":"x"}`, "system_prompt": `"system_prompt":7`, "res_prefix": `"res_prefix":7`, "encoder_input_template": `"encoder_input_template":"a"`,
	"decoder_input_template": `"decoder_input_template":` + text(17_000), "is_streaming_mode": `"is_streaming_mode":7`,
}

// TestFieldBounds checks that values beyond a bound are refused as the table says.
func TestFieldBounds(t *testing.T) {
	t.Parallel()
	s := constrained(t, plainTemplate)
	handler, refused := s.handlers(t), server.UnsupportedFields()
	for _, r := range fieldRows(t) {
		for _, e := range r.endpoints {
			for _, f := range r.fields {
				over := overBounds[e+" "+f]
				if over == "" {
					over = overBounds[f]
				}
				if slices.Contains(refused, f) && strings.Contains(r.message, "is not supported") {
					over = fmt.Sprintf(`%q:[7]`, f)
				}
				if over == "" || r.status == 0 {
					t.Errorf("%s of %s: status %d, no request is over its bound", f, e, r.status)
					continue
				}
				var got struct {
					Error   struct{ Message string }
					Message string
				}
				want := strings.ReplaceAll(r.message, "KEY", f)
				path, w := endpointPaths[e].path, httptest.NewRecorder()
				handler(path).ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader("{"+endpointPaths[e].body+","+over+"}")))
				status := w.Code
				if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
					t.Errorf("%s of %s: %v", f, e, err)
				}
				if message := got.Error.Message + got.Message; status != r.status || !strings.HasPrefix(message, want) {
					t.Errorf("%s of %s: status %d, %.200q; expected %d, %q", f, e, status, message, r.status, want)
				}
			}
		}
	}
}
