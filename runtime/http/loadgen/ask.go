package loadgen

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// words are frequent English words; most vocabularies have a token for each.
var words = strings.Fields(`the of and to in is it that for was on with as be by at this have from or one had not but what
all were when we there can an your which their said if do will each about how up out them then she many some so these would
other into has more her two like him see time could no make than first been its who now people my made over did down only
way find use may water long little very after words called just where most know get through back much before go good new
write our used me man too any day same right look think also around another came come work three must because does part`)

// text returns a prompt of n random words. Prompts have no common prefix, so the prefix
// cache has no effect.
func text(n int, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 2))
	list := make([]string, n)
	for i := range list {
		list[i] = words[rng.IntN(len(words))]
	}
	return strings.Join(list, " ")
}

// body returns a request as JSON. Servers ignore keys that they do not know.
func (c *Config) body(a Arrival, seed uint64) []byte {
	prompt := a.Text
	if prompt == "" {
		prompt = text(max(1, a.Words), c.Seed<<32+seed)
	}
	model := ""
	if n := uint64(len(c.Models)); n > 0 {
		model = c.Models[seed%n]
	}
	m := map[string]any{
		"model": model, "max_tokens": a.MaxTokens, "temperature": 0, "stream": true, "ignore_eos": true, "cache_prompt": false,
		"stream_options": map[string]any{"include_usage": true},
	}
	if a.Chat {
		m["messages"] = []map[string]string{{"role": "user", "content": prompt}}
	} else {
		m["prompt"] = prompt
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return data
}

// ask sends one request and reads its answer.
func (c *Config) ask(ctx context.Context, client *http.Client, a Arrival, seed uint64, origin time.Time) (r Result) {
	r.Class = a.Class
	if a.Stop > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(a.Stop*float64(time.Second)))
		defer cancel()
	}
	path := "/v1/completions"
	if a.Chat {
		path = "/v1/chat/completions"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, bytes.NewReader(c.body(a, seed)))
	if err != nil {
		r.Err = err
		return r
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header["X-Idempotency-Key"] = nil // not sent; it makes net/http retry when the server has closed a keep-alive connection
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	start := time.Now()
	r.Start = start.Sub(origin)
	resp, err := client.Do(req)
	if err != nil {
		r.Err = err
		return r
	}
	defer resp.Body.Close()
	r.Status = resp.StatusCode
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		r.Err = fmt.Errorf("status %d: %s", resp.StatusCode, bytes.TrimSpace(data))
		return r
	}
	r.Err = r.read(resp.Body, start)
	return r
}

// A chunk has the parts of a streamed event that are measured.
type chunk struct {
	Choices []struct {
		Text  string
		Delta struct{ Content string }
	}
	Usage *struct {
		Completion int `json:"completion_tokens"`
	}
	Error *struct{ Message string }
}

// read reads the events of an answer. It records their times and decodes them only
// after the last one, because the client often runs on the server's machine and would
// take CPU time from it.
func (r *Result) read(body io.Reader, start time.Time) error {
	type event struct {
		at  time.Time
		end int // in texts
	}
	var events []event
	var texts []byte
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			texts = append(texts, data...)
			events = append(events, event{time.Now(), len(texts)})
		}
	}
	r.Latency = time.Since(start)
	var last time.Time
	from := 0
	for _, e := range events {
		text, err := r.event(texts[from:e.end])
		if err != nil {
			return err
		}
		from = e.end
		switch {
		case !text:
			continue
		case last.IsZero():
			r.TTFT = e.at.Sub(start)
		default:
			r.ITL = append(r.ITL, e.at.Sub(last))
		}
		last = e.at
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if last.IsZero() {
		return errors.New("the answer had no text")
	}
	return nil
}

// event decodes an event and reports whether it contains text.
func (r *Result) event(data []byte) (text bool, err error) {
	if string(data) == "[DONE]" {
		return false, nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, fmt.Errorf("event %q: %w", data, err)
	}
	if c.Error != nil {
		return false, errors.New(c.Error.Message)
	}
	if c.Usage != nil {
		r.Tokens = c.Usage.Completion
	}
	return len(c.Choices) > 0 && (c.Choices[0].Text != "" || c.Choices[0].Delta.Content != ""), nil
}
