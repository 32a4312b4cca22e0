//go:build unix

package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/text/chat"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
	"github.com/iflowc/iflowc/spec/tokenizerfile"
)

const salt = 3

// letters has one token per letter: A is 5.
func letters(t testing.TB) *tokenizer.Tokenizer {
	return tokensOf(t, "Ġ.ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
}

// infillLetters has tokens of letters, and of infilling, repositories and files.
func infillLetters(t testing.TB) *tokenizer.Tokenizer {
	return tokensOf(t, "ĠĊ.abcdefghijklmnopqrstuvwxyz", "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>")
}

// tokensOf has one token per character, from id 3 on, and added tokens behind them.
func tokensOf(t testing.TB, alphabet string, added ...string) *tokenizer.Tokenizer {
	t.Helper()
	vocab := map[string]int{"<unk>": 0, "<s>": 1, "</s>": 2}
	for _, r := range alphabet {
		vocab[string(r)] = len(vocab)
	}
	list := ""
	for _, token := range added {
		list += fmt.Sprintf(`,{"id":%d,"content":%q,"special":false,"normalized":false}`, len(vocab), token)
		vocab[token] = len(vocab)
	}
	for i := len(vocab); i < devicetest.Vocab; i++ {
		vocab[fmt.Sprint(i-57)] = i
	}
	v, err := json.Marshal(vocab)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizerfile.Load(tokenizerfile.Files{"tokenizer.json": []byte(`{"version":"1.0","added_tokens":[{"id":1,"content":"<s>","special":true,"normalized":false},{"id":2,"content":"</s>","special":true,"normalized":false}` + list + `],
"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},"post_processor":null,
"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","unk_token":"<unk>","vocab":` + string(v) + `,"merges":[]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// A service is a server of the fake model.
type service struct {
	*httptest.Server
	cfg server.Config
	tok *tokenizer.Tokenizer
	eng *engine.Engine
}

// start starts a service. The engine's device is what the functions make of the fake model.
func start(t testing.TB, edit func(*server.Config, *scheduler.Options, *engine.Options), wrap ...func(device.Device) device.Device) *service {
	t.Helper()
	m := devicetest.Manifest()
	m.Hash = "0123456789abcdef"
	lib, weights, table := devicetest.Open(t, m, salt)
	tok := letters(t)
	template, err := chat.Parse("{% for m in messages %}{{ m.role[0] }}{{ m.content }}.{% endfor %}{% if add_generation_prompt %}A{% endif %}", chat.TokensOf(tok))
	if err != nil {
		t.Fatal(err)
	}
	reg := &metrics.Registry{}
	cfg := server.Config{
		Registry: reg, Manifest: m, Tokenizer: tok, Template: template, Context: 512, Sequences: 4,
		Defaults: server.Defaults{Settings: decode.Settings{Options: decode.Options{Temperature: 1}}, EOS: []int32{devicetest.EOS}},
	}
	opt := scheduler.Options{Vocab: devicetest.Vocab, Metrics: scheduler.NewMetrics(reg)}
	eo := engine.Options{Threads: 1, MaxSeqs: 4, Prefix: true, Populate: true}
	if edit != nil {
		edit(&cfg, &opt, &eo)
	}
	var dev device.Device = lib
	if eo.AdapterBytes > 0 {
		dev = &devicetest.Adapters{Device: lib}
	}
	for _, f := range wrap {
		dev = f(dev)
	}
	eng, err := engine.Open(engine.Model{Manifest: m, Device: dev, Weights: weights, Dispatch: table}, eo)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Scheduler = scheduler.New(eng, opt)
	s := &service{httptest.NewServer(server.New(cfg).Handler()), cfg, tok, eng}
	t.Cleanup(func() {
		s.Close()
		cfg.Scheduler.Close()
		if st := eng.Stats(); st.Used != 0 || eng.Len() != 0 {
			t.Errorf("left in the engine: %d sequences, %d pages", eng.Len(), st.Used)
		}
		eng.Close()
	})
	return s
}

// post sends JSON and decodes the response.
func (s *service) post(t testing.TB, path, body string, v any) (int, http.Header) {
	t.Helper()
	resp, err := http.Post(s.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if v != nil {
		if err := json.Unmarshal(data, v); err != nil {
			t.Fatalf("%s: %v in %q", path, err, data)
		}
	}
	return resp.StatusCode, resp.Header
}

// events decodes a response's server-sent events.
func (s *service) events(t testing.TB, path, body string) (list []map[string]any) {
	t.Helper()
	resp, err := http.Post(s.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		data, _ := io.ReadAll(resp.Body)
		t.Fatalf("content type %q: %s", ct, data)
	}
	lines := bufio.NewScanner(resp.Body)
	done := false
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			done = true
			continue
		}
		var e map[string]any
		if err := json.Unmarshal(data, &e); err != nil || done {
			t.Fatalf("%v, done %v: %s", err, done, data)
		}
		list = append(list, e)
	}
	if !done {
		t.Error("no [DONE]")
	}
	return list
}

// greedy returns the model's greedy continuation of a prompt.
func (s *service) greedy(prompt string, n int) string {
	return s.tok.Decode(devicetest.Greedy(s.tok.Encode(prompt, true), n, salt), true)
}

type completion struct {
	ID, Object, Model string
	Choices           []struct {
		Index    int
		Text     string
		Message  struct{ Role, Content string }
		Finish   *string `json:"finish_reason"`
		Logprobs *struct {
			Tokens        []string
			TokenLogprobs []*float64            `json:"token_logprobs"`
			TopLogprobs   []map[string]*float64 `json:"top_logprobs"`
			Content       []struct {
				Token   string
				Logprob float64
				Bytes   []int
				Top     []struct {
					Token   string
					Logprob float64
				} `json:"top_logprobs"`
			}
		}
	}
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Drafts *struct {
			Accepted int `json:"accepted_prediction_tokens"`
			Rejected int `json:"rejected_prediction_tokens"`
		} `json:"completion_tokens_details"`
	}
	Error *struct {
		Message, Type string
		Param, Code   *string
	}
}

func TestCompletions(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var c completion
	if status, _ := s.post(t, "/v1/completions", `{"prompt":"Hello","max_tokens":9,"temperature":0}`, &c); status != 200 {
		t.Fatal(status, c.Error)
	}
	if got := c.Choices[0]; got.Text != s.greedy("Hello", 9) || *got.Finish != "length" || c.Object != "text_completion" || c.Model != "fake" {
		t.Errorf("%+v, expected %q", c, s.greedy("Hello", 9))
	}
	if c.Usage.Prompt != 5 || c.Usage.Completion != 9 || c.Usage.Total != 14 {
		t.Errorf("usage %+v", c.Usage)
	}
	// Lists of prompts, as texts and as ids, with several choices each.
	for _, prompt := range []string{`["Hello","World"]`, `[[12,35,42,42,45],[27,45,48,42,34]]`} {
		var c completion
		s.post(t, "/v1/completions", `{"prompt":`+prompt+`,"max_tokens":4,"temperature":0,"n":2}`, &c)
		if len(c.Choices) != 4 {
			t.Fatalf("%d choices", len(c.Choices))
		}
		for i, choice := range c.Choices {
			if choice.Index != i || choice.Text != s.greedy([]string{"Hello", "World"}[i/2], 4) {
				t.Errorf("choice %d: %+v", i, choice)
			}
		}
	}
}

// TestStop checks that an answer ends before a stop word, however tokens split it.
func TestStop(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	all := s.greedy("Stop", 30)
	for _, n := range []int{1, 3} {
		word := all[10 : 10+n]
		want, _, _ := strings.Cut(all, word)
		var c completion
		s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt":"Stop","max_tokens":30,"temperature":0,"stop":[%q,"neverr"]}`, word), &c)
		if c.Choices[0].Text != want || *c.Choices[0].Finish != "stop" {
			t.Errorf("stop %q: %+v, expected %q", word, c.Choices[0], want)
		}
		var text strings.Builder
		for _, e := range s.events(t, "/v1/completions", fmt.Sprintf(`{"prompt":"Stop","max_tokens":30,"temperature":0,"stream":true,"stop":%q}`, word)) {
			text.WriteString(e["choices"].([]any)[0].(map[string]any)["text"].(string))
		}
		if text.String() != want {
			t.Errorf("streamed %q, expected %q", text.String(), want)
		}
	}
	var c completion // one token
	id := s.tok.Encode(all[5:6], false)[0]
	s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt":"Stop","max_tokens":30,"temperature":0,"stop_token_ids":[%d]}`, id), &c)
	if want, _, _ := strings.Cut(all, all[5:6]); c.Choices[0].Text != want {
		t.Errorf("stop token: %q, expected %q", c.Choices[0].Text, want)
	}
}

// TestEcho compares the prompt's log-probabilities with the model's rows.
func TestEcho(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	prompt := strings.Repeat("abcXYZ", 20)
	for _, max := range []int{0, 2} {
		var c completion
		s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":%d,"temperature":0,"logprobs":2,"echo":true}`, prompt, max), &c)
		l := c.Choices[0].Logprobs
		ids := s.tok.Encode(prompt+s.greedy(prompt, max), true)
		if len(l.Tokens) != len(ids) || l.TokenLogprobs[0] != nil || c.Choices[0].Text != prompt+s.greedy(prompt, max) {
			t.Fatalf("%d tokens: %+v", len(l.Tokens), c)
		}
		for i := 1; i < len(ids); i++ {
			row := devicetest.Logits(ids[:i], salt)
			total, err := decode.LogSumExp(row)
			if err != nil {
				t.Fatal(err)
			}
			if want := float64(row[ids[i]]) - total; *l.TokenLogprobs[i] != want {
				t.Errorf("token %d: %v, expected %v", i, *l.TokenLogprobs[i], want)
			}
			if len(l.TopLogprobs[i]) != 2 {
				t.Errorf("token %d has %d top tokens", i, len(l.TopLogprobs[i]))
			}
		}
	}
}

func TestChat(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const messages = `"messages":[{"role":"system","content":"Be"},{"role":"user","content":[{"type":"text","text":"Hi"}]}],"temperature":0,"max_tokens":8`
	want := s.greedy("sBe.uHi.A", 8)
	var c completion
	if status, _ := s.post(t, "/v1/chat/completions", `{`+messages+`,"logprobs":true,"top_logprobs":3}`, &c); status != 200 {
		t.Fatal(status, c.Error)
	}
	choice := c.Choices[0]
	if choice.Message.Content != want || choice.Message.Role != "assistant" || *choice.Finish != "length" || len(choice.Logprobs.Content) != 8 || len(choice.Logprobs.Content[0].Top) != 3 {
		t.Errorf("%+v, expected %q", c, want)
	}
	if top := choice.Logprobs.Content[0]; top.Top[0].Token != top.Token || top.Top[0].Logprob != top.Logprob || len(top.Bytes) == 0 {
		t.Errorf("greedy token and argmax differ: %+v", top)
	}
	list := s.events(t, "/v1/chat/completions", `{`+messages+`,"stream":true,"stream_options":{"include_usage":true},"n":2}`)
	text, finish := [2]string{}, [2]string{}
	for i, e := range list {
		if e["object"] != "chat.completion.chunk" || e["id"] != list[0]["id"] {
			t.Errorf("chunk %v", e)
		}
		choices := e["choices"].([]any)
		if len(choices) == 0 {
			if u := e["usage"].(map[string]any); i != len(list)-1 || u["completion_tokens"] != 16.0 {
				t.Errorf("usage %v in chunk %d of %d", e, i, len(list))
			}
			continue
		}
		c := choices[0].(map[string]any)
		at := int(c["index"].(float64))
		if content, ok := c["delta"].(map[string]any)["content"].(string); ok {
			text[at] += content
		}
		if f, ok := c["finish_reason"].(string); ok {
			finish[at] = f
		}
	}
	if text != [2]string{want, want} || finish != [2]string{"length", "length"} {
		t.Errorf("streamed %q %q, expected %q", text, finish, want)
	}
}

// TestSeeds checks that equal seeds repeat the result and that choices differ.
func TestSeeds(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ask := func(seed int) (out []string) {
		var c completion
		s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt":"Seeds","max_tokens":20,"seed":%d,"n":3}`, seed), &c)
		for _, choice := range c.Choices {
			out = append(out, choice.Text)
		}
		return out
	}
	a, b, c := ask(1), ask(1), ask(7)
	if fmt.Sprint(a) != fmt.Sprint(b) || fmt.Sprint(a) == fmt.Sprint(c) || a[0] == a[1] {
		t.Errorf("%q %q %q", a, b, c)
	}
}
