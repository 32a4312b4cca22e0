//go:build unix

package server_test

import (
	"cmp"
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
	status            int    // status beyond the bound; 0: the field has no effect
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
	answer := regexp.MustCompile("^([0-9]{3}) `([^`]*)`")
	for line := range strings.SplitSeq(table, "\n") {
		if strings.HasPrefix(line, "## ") {
			break
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) == 3 { // no effect
			cells = append(cells, "")
		}
		if len(cells) != 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		r := fieldRow{endpoints: strings.Split(strings.Replace(cells[0], "generation", "chat, completions, infill, responses, messages", 1), ", ")}
		for f := range strings.SplitSeq(cells[1], ", ") {
			r.fields = append(r.fields, strings.Trim(f, "`"))
		}
		if cells[3] == "" && strings.HasPrefix(cells[2], "no effect") {
			rows = append(rows, r)
			continue
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

	"load adapter":   {"/v1/load_lora_adapter", `"lora_name":"a","lora_path":"b"`},
	"unload adapter": {"/v1/unload_lora_adapter", `"lora_name":"a"`},

	"responses":         {"/v1/responses", `"input":"a","max_output_tokens":1`},
	"messages":          {"/v1/messages", `"messages":[{"role":"user","content":"a"}],"max_tokens":1`},
	"ollama chat":       {"/api/chat", `"messages":[{"role":"user","content":"a"}],"options":{"num_predict":1}`},
	"ollama generate":   {"/api/generate", `"prompt":"a","options":{"num_predict":1}`},
	"ollama show":       {"/api/show", `"model":""`},
	"ollama embed":      {"/api/embed", `"input":"a"`},
	"ollama embeddings": {"/api/embeddings", `"prompt":"a"`},
	"ollama pull":       {"/api/pull", `"model":""`},
}

// list returns a JSON list of n equal values.
func list(n int, value string) string {
	return "[" + strings.Repeat(value+",", n-1) + value + "]"
}

// object returns a JSON object of n keys.
func object(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":"a"`, i)
	}
	return "{" + strings.Join(keys, ",") + "}"
}

// text returns a JSON string of n bytes.
func text(n int) string { return `"` + strings.Repeat("x", n) + `"` }

// overBounds are values beyond the bound of a field, with the endpoint if endpoints
// differ.
var overBounds = map[string]string{
	"priority": `"priority":101`, "user": `"user":` + text(257), "cache_salt": `"cache_salt":` + text(257), "model": `"model":"other"`,
	"temperature": `"temperature":101`, "top_p": `"top_p":1.1`, "top_k": `"top_k":-2`, "fill top_k": `"top_k":1001`, "min_p": `"min_p":-1`, "typical_p": `"typical_p":2`, "tfs_z": `"tfs_z":2`,
	"repeat_last_n": `"repeat_last_n":-2`, "mirostat": `"mirostat":3`, "mirostat_tau": `"mirostat_tau":101`, "mirostat_eta": `"mirostat_eta":101`,
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
	"stream_options": `"stream_options":{}`, "stream_options.include_usage": `"stream":true,"stream_options":{"include_usage":7}`, "stream_options.continuous_usage_stats": `"stream":true,"stream_options":{"continuous_usage_stats":7}`, "chat logprobs": `"logprobs":2`, "completions logprobs": `"logprobs":21`, "top_logprobs": `"top_logprobs":21`,
	"tools": `"tools":` + list(129, `{"function":{"name":"f"}}`), "tools[].type": `"tools":[{"type":"x","function":{"name":"f"}}]`, "tools[].function": `"tools":[{"type":"function"}]`,
	"tools[].function.name": `"tools":[{"function":{"name":` + text(129) + `}}]`, "tools[].function.strict": `"tools":[{"function":{"name":"f","strict":7}}]`, "tools[].function.parameters": `"tools":[{"function":{"name":"f","parameters":{"a":` + text(300_000) + `}}}]`,
	"tool_choice": `"tool_choice":` + text(263_000), "functions": `"functions":[{"name":"f"}]`, "parallel_tool_calls": `"parallel_tool_calls":1`, "chat_template_kwargs": `"chat_template_kwargs":{"a":` + text(17_000) + `}`,
	"reasoning_effort": `"reasoning_effort":` + text(65), "thinking_token_budget": `"thinking_token_budget":-2`, "reasoning_budget_tokens": `"reasoning_budget_tokens":-2`, "documents": `"documents":` + list(4097, "{}"), "continue_final_message": `"continue_final_message":1`, "add_generation_prompt": `"add_generation_prompt":1`,
	"prompt": `"prompt":` + list(257, `"a"`), "suffix": `"suffix":"a"`, "echo": `"echo":1`, "best_of": `"best_of":3`,
	"input": `"input":` + list(2049, `"a"`), "encoding_format": `"encoding_format":"x"`, "dimensions": `"dimensions":0`, "prompt_name": `"prompt_name":"other"`,
	"input_prefix": `"input_prefix":null`, "input_suffix": `"input_suffix":null`, "input_extra": `"input_extra":` + list(257, `{"text":"a"}`), "input_extra[].filename": `"input_extra":[{"filename":` + text(257) + `}]`,
	"input_extra[].text": `"input_extra":[{"text":7}]`, "infill prompt": `"prompt":7`, "infill max_tokens": `"n_predict":null,"max_tokens":-2`, "n_predict": `"n_predict":-2`, "n_indent": `"n_indent":-1`,
	"t_max_predict_ms": `"t_max_predict_ms":-2`, "samplers": `"samplers":7`, "response_fields": `"response_fields":` + list(65, `"a"`),
	"query": `"query":""`, "rerank documents": `"documents":` + list(2049, `"a"`), "top_n": `"top_n":-1`, "max_tokens_per_doc": `"max_tokens_per_doc":0`, "rerank truncate_prompt_tokens": `"truncate_prompt_tokens":513`, "score truncate_prompt_tokens": `"truncate_prompt_tokens":0`, "return_documents": `"return_documents":7`, "text_1": `"text_1":["a","b"]`, "text_2": `"text_2":` + list(2049, `"a"`),
	"content": `"content":` + text(262145), "tokenize prompt": `"content":null,"prompt":` + text(262145), "add_special": `"add_special":7`, "with_pieces": `"with_pieces":7`, "tokens": `"tokens":[61]`, "ids": `"ids":[61]`, "skip_special": `"skip_special":7`,
	"translate text": `"text":` + list(257, `"a"`), "text": `"text":7`, "encoder_ids": `"encoder_ids":[[61]]`, "src": `"src":` + text(65), "tgt": `"tgt":` + text(65), "beams": `"beams":5`, "best": `"best":5`, "forced_bos": `"forced_bos":61`,
	"header": `"header":7`, "header.fn": `"header":{"fn":"x"}`, "system_prompt": `"system_prompt":7`, "res_prefix": `"res_prefix":7`, "encoder_input_template": `"encoder_input_template":"a"`,
	"load adapter lora_name": `"lora_name":` + text(129), "unload adapter lora_name": `"lora_name":"other"`, "lora_path": `"lora_path":` + text(1025), "load_inplace": `"load_inplace":7`, "lora_int_id": `"lora_int_id":"a"`,
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
				over := cmp.Or(overNewer[e+" "+f], overBounds[e+" "+f], overNewer[f], overBounds[f])
				if slices.Contains(refused, f) && strings.Contains(r.message, "is not supported") {
					over = fmt.Sprintf(`%q:[7]`, f)
				}
				if r.message == "" && r.status == 0 { // without effect, of any type
					continue
				}
				if over == "" || r.status == 0 {
					t.Errorf("%s of %s: status %d, no request is over its bound", f, e, r.status)
					continue
				}
				want := strings.ReplaceAll(r.message, "KEY", f)
				path, w := endpointPaths[e].path, httptest.NewRecorder()
				handler(path).ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader("{"+endpointPaths[e].body+","+over+"}")))
				status := w.Code
				if message := refusal(w.Body.Bytes()); status != r.status || !strings.HasPrefix(message, want) {
					t.Errorf("%s of %s: status %d, %.200q; expected %d, %q", f, e, status, message, r.status, want)
				}
			}
		}
	}
}

// refusal returns the message of an error in the format of any API.
func refusal(body []byte) string {
	var got struct {
		Error   json.RawMessage
		Message string
	}
	var openai struct{ Message string }
	var ollama string
	if json.Unmarshal(body, &got) == nil && json.Unmarshal(got.Error, &openai) != nil {
		json.Unmarshal(got.Error, &ollama) // neither: there is no message
	}
	return got.Message + openai.Message + ollama
}

// overNewer are the values beyond the bounds of the fields of newer APIs.
var overNewer = map[string]string{
	"responses n": `"n":2`, "messages n": `"n":2`, "responses input": `"input":` + list(4097, `{"role":"user","content":"a"}`),
	"input[].type": `"input":[{"type":"other"}]`, "input[].role": `"input":[{"role":"other","content":"a"}]`, "input[].content": `"input":[{"role":"user","content":[{"type":"input_image"}]}]`,
	"input[].content[].type": `"input":[{"role":"user","content":[{"type":"x"}]}]`, "input[].content[].text": `"input":[{"role":"user","content":[{"type":"input_text","text":7}]}]`,
	"input[].content[].refusal": `"input":[{"role":"user","content":[{"type":"refusal","refusal":7}]}]`, "input[].output": `"input":[{"type":"function_call_output","call_id":"1","output":[{"type":"x"}]}]`,
	"input[].id": `"input":[{"type":"item_reference","id":"msg_1"}]`, "input[].call_id": `"input":[{"type":"function_call_output","call_id":` + text(257) + `,"output":"a"}]`,
	"input[].name": `"input":[{"type":"function_call","call_id":"1","name":` + text(129) + `}]`, "input[].arguments": `"input":[{"type":"function_call","call_id":"1","name":"f","arguments":7}]`,
	"input[].namespace": `"input":[{"type":"function_call","call_id":"1","name":"f","namespace":` + text(129) + `}]`, "tools[].tools": `"tools":[{"type":"namespace","name":"a","tools":[{"type":"namespace","name":"b"}]}]`,
	"input[].input": `"input":[{"type":"custom_tool_call","input":7}]`, "input[].summary": `"input":[{"type":"reasoning","summary":7}]`, "input[].encrypted_content": `"input":[{"type":"reasoning","encrypted_content":7}]`,
	"instructions": `"instructions":7`, "previous_response_id": `"previous_response_id":"resp_1"`, "store": `"store":7`, "max_output_tokens": `"max_output_tokens":-1`, "responses text": `"text":7`, "reasoning": `"reasoning":7`,
	"responses stream_options": `"stream_options":7`, "text.format": `"text":{"format":{"type":"json_schema","schema":{"a":` + text(300_000) + `}}}`, "text.format.type": `"text":{"format":{"type":"x"}}`,
	"text.format.schema": `"text":{"format":{"type":"json_schema"}}`, "text.format.name": `"text":{"format":{"type":"text","name":` + text(257) + `}}`, "text.format.strict": `"text":{"format":{"strict":7}}`, "text.verbosity": `"text":{"verbosity":"low"}`,
	"reasoning.effort": `"reasoning":{"effort":` + text(65) + `}`, "reasoning.summary": `"reasoning":{"summary":"x"}`, "reasoning.generate_summary": `"reasoning":{"generate_summary":"x"}`,
	"responses tools": `"tools":` + list(129, `{"type":"function","name":"f"}`), "responses tools[].type": `"tools":[{"type":"web_search"}]`, "tools[].name": `"tools":[{"type":"function","name":` + text(129) + `}]`,
	"tools[].description": `"tools":[{"type":"function","name":"f","description":` + text(300_000) + `}]`, "tools[].parameters": `"tools":[{"type":"function","name":"f","parameters":{"a":` + text(300_000) + `}}]`,
	"tools[].strict": `"tools":[{"strict":7}]`, "tools[].format": `"tools":[{"type":"custom","name":"f","format":7}]`, "tools[].format.type": `"tools":[{"type":"custom","name":"f","format":{"type":"x"}}]`,
	"tools[].format.syntax": `"tools":[{"type":"custom","name":"f","format":{"type":"grammar","syntax":"lark"}}]`, "tools[].format.definition": `"tools":[{"type":"custom","name":"f","format":{"type":"grammar","syntax":"regex","definition":` + text(70_000) + `}}]`,
	"responses tool_choice": `"tool_choice":{"type":"mcp"}`, "responses top_logprobs": `"include":["message.output_text.logprobs"],"top_logprobs":21`, "include": `"include":["x"]`,
	"stream_options.include_obfuscation": `"stream_options":{"include_obfuscation":7}`, "safety_identifier": `"safety_identifier":` + text(257), "prompt_cache_key": `"prompt_cache_key":` + text(257),

	"messages messages": `"messages":` + list(4097, `{"role":"user","content":"a"}`), "messages messages[].role": `"messages":[{"role":"other"}]`, "messages messages[].content": `"messages":[{"role":"user","content":[{"type":"image"}]}]`,
	"messages[].content[].type": `"messages":[{"role":"user","content":[{"type":"x"}]}]`, "messages[].content[].text": `"messages":[{"role":"user","content":[{"text":7}]}]`, "messages[].content[].thinking": `"messages":[{"role":"assistant","content":[{"thinking":7}]}]`,
	"messages[].content[].id": `"messages":[{"role":"assistant","content":[{"type":"tool_use","id":` + text(257) + `,"name":"f"}]}]`, "messages[].content[].tool_use_id": `"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":` + text(257) + `}]}]`,
	"messages[].content[].name": `"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":` + text(129) + `}]}]`, "messages[].content[].input": `"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":7}]}]`,
	"messages[].content[].content": `"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"x"}]}]}]`, "messages[].content[].source": `"messages":[{"role":"user","content":[{"type":"document","source":7}]}]`, "messages[].content[].source.type": `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url"}}]}]`,
	"messages[].content[].source.data": `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","data":7}}]}]`, "messages[].content[].source.content": `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"x"}]}}]}]`,
	"messages[].content[].tool_name": `"messages":[{"role":"user","content":[{"type":"tool_reference","tool_name":7}]}]`, "messages[].content[].is_error": `"messages":[{"role":"user","content":[{"is_error":7}]}]`,
	"messages system": `"system":[{"type":"image"}]`, "stop_sequences": `"stop_sequences":` + list(17, `"a"`), "messages tools": `"tools":` + list(129, `{"name":"f"}`), "messages tools[].type": `"tools":[{"type":"bash_20250124","name":"bash"}]`,
	"tools[].input_schema": `"tools":[{"name":"f","input_schema":{"a":` + text(300_000) + `}}]`, "messages tools[].name": `"tools":[{"name":` + text(129) + `}]`, "messages tools[].description": `"tools":[{"name":"f","description":` + text(300_000) + `}]`,
	"messages tool_choice": `"tool_choice":{}`, "tool_choice.type": `"tool_choice":{"type":"x"}`, "tool_choice.name": `"tool_choice":{"type":"tool","name":"g"}`, "tool_choice.disable_parallel_tool_use": `"tool_choice":{"disable_parallel_tool_use":7}`,
	"thinking": `"thinking":{}`, "thinking.type": `"thinking":{"type":"x"}`, "thinking.budget_tokens": `"thinking":{"budget_tokens":"x"}`, "thinking.display": `"thinking":{"display":7}`, "output_config": `"output_config":7`,
	"output_config.effort": `"output_config":{"effort":` + text(65) + `}`, "output_config.format": `"output_config":{"format":{}}`, "output_config.format.type": `"output_config":{"format":{"type":"x"}}`, "output_format": `"output_format":{}`,
	"output_format.type": `"output_format":{"type":"x"}`, "output_config.format.schema": `"output_config":{"format":{"type":"json_schema","schema":{"a":` + text(300_000) + `}}}`,
	"output_format.schema": `"output_format":{"type":"json_schema","schema":{"a":` + text(300_000) + `}}`, "messages metadata": `"metadata":7`, "metadata.user_id": `"metadata":{"user_id":` + text(257) + `}`,
	"responses metadata": `"metadata":` + object(17),

	"options": `"options":7`, "options.num_predict": `"options":{"num_predict":0.5}`, "options.num_ctx": `"options":{"num_ctx":0.5}`, "options.penalize_newline": `"options":{"penalize_newline":7}`,
	"format": `"format":"x"`, "think": `"think":7`, "ollama chat logprobs": `"logprobs":7`, "ollama generate logprobs": `"logprobs":7`, "ollama chat top_logprobs": `"logprobs":true,"top_logprobs":21`, "ollama generate top_logprobs": `"logprobs":true,"top_logprobs":21`,
	"options.temperature": `"options":{"temperature":101}`, "options.top_p": `"options":{"top_p":2}`, "options.min_p": `"options":{"min_p":2}`, "options.typical_p": `"options":{"typical_p":2}`, "options.tfs_z": `"options":{"tfs_z":2}`,
	"options.mirostat_tau": `"options":{"mirostat":1,"mirostat_tau":101}`, "options.mirostat_eta": `"options":{"mirostat":1,"mirostat_eta":101}`, "options.frequency_penalty": `"options":{"frequency_penalty":3}`, "options.presence_penalty": `"options":{"presence_penalty":3}`,
	"options.top_k": `"options":{"top_k":-2}`, "options.mirostat": `"options":{"mirostat":3}`, "options.seed": `"options":{"seed":18446744073709551616}`, "options.stop": `"options":{"stop":` + list(17, `"a"`) + `}`,
	"options.repeat_penalty": `"options":{"repeat_penalty":101}`, "options.repeat_last_n": `"options":{"repeat_last_n":-2}`, "ollama embeddings prompt": `"prompt":7`, "insecure": `"insecure":7`,
	"ollama chat messages[].content": `"messages":[{"role":"user","content":7}]`, "messages[].thinking": `"messages":[{"thinking":7}]`, "messages[].images": `"messages":[{"role":"user","images":["AAAA"]}]`,
	"ollama chat messages[].tool_calls": `"messages":[{"role":"assistant","tool_calls":` + list(129, `{"function":{"name":"f"}}`) + `}]`,
	"messages[].tool_calls[].id":        `"messages":[{"tool_calls":[{"id":7}]}]`, "messages[].tool_calls[].function": `"messages":[{"tool_calls":[{"function":7}]}]`, "messages[].tool_calls[].function.name": `"messages":[{"role":"assistant","tool_calls":[{"function":{"name":""}}]}]`,
	"messages[].tool_calls[].function.arguments": `"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":7}}]}]`, "messages[].tool_name": `"messages":[{"role":"tool","tool_name":` + text(257) + `}]`,
	"ollama generate prompt": `"prompt":7`, "ollama generate system": `"system":7`, "raw": `"raw":7`, "images": `"images":["AAAA"]`, "template": `"template":"a"`, "ollama generate context": `"context":[1]`,
	"name": `"model":"","name":"other"`, "verbose": `"verbose":7`, "truncate": `"truncate":7`,
}
