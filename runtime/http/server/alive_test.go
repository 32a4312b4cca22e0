//go:build unix

package server_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// aliveStreams are the streams of all APIs: a request, what the stream begins with while
// the request waits, its pings, its end, and its end by an error.
var aliveStreams = map[string]struct{ body, opening, ping, end, failed string }{
	"/v1/chat/completions": {
		`"messages":[{"role":"user","content":"a"}],"max_tokens":2`, `data: {"id":"chatcmpl-`, ": ping\n\n", "data: [DONE]\n\n",
		"\n\ndata: {\"error\":{\"message\":\"the service is shutting down\",\"type\":\"server_error\",\"param\":null,\"code\":\"shutting_down\"}}\n\n",
	},
	"/v1/completions": {`"prompt":"a","max_tokens":2`, ": ping\n\n", ": ping\n\n", "data: [DONE]\n\n", "\n\ndata: {\"error\":{\"message\":\"the service is shutting down\","},
	"/infill":         {`"input_prefix":"a","input_suffix":"b","n_predict":2`, ": ping\n\n", ": ping\n\n", "\"stop\":true", "\n\ndata: {\"error\":{\"message\":\"the service is shutting down\","},
	"/v1/responses": {
		`"input":"a","max_output_tokens":2`, "event: response.created\ndata: ", ": ping\n\n", "event: response.incomplete\ndata: ",
		"event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":2,",
	},
	"/v1/messages": {
		`"messages":[{"role":"user","content":"a"}],"max_tokens":2`, "event: message_start\ndata: ", "event: ping\ndata: {\"type\":\"ping\"}\n\n", "event: message_stop\ndata: ",
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"the service is shutting down\"}}\n\n",
	},
	"/api/chat": {
		`"model":"FAKE","messages":[{"role":"user","content":"a"}],"options":{"num_predict":2}`, `{"model":"FAKE","created_at":"`, `"message":{"role":"assistant","content":""},"done":false}` + "\n", `"done":true`,
		"\n{\"error\":\"the service is shutting down\"}\n",
	},
	"/api/generate": {`"prompt":"a","options":{"num_predict":2}`, `{"model":"fake:latest","created_at":"`, `"response":"","done":false}` + "\n", `"done":true`, "\n{\"error\":\"the service is shutting down\"}\n"},
	"/inferflow":    {`"text":"a","max_new_tokens":2`, `{"ret_code":"succ","text":"","time_cost":`, `"is_end":false}` + "\n", `"is_end":true}` + "\n", "\n{\"ret_code\":\"error.busy\","},
}

// TestKeepAlive checks that the streams of requests that wait begin and send pings, while
// the engine waits for a late mask, and that what fails then is an event. What cannot be
// queued gets a status.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"answered": false, "failed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gate{make(chan struct{})}
			s := start(t, func(c *server.Config, o *scheduler.Options, e *engine.Options) {
				o.Queue, e.MaxSeqs, c.Sequences, c.Tokenizer = len(aliveStreams), 1, 1, infillLetters(t)
				c.Constrain = func(server.Constraint) (decode.Mask, error) { return g, nil }
				server.SetPace(c, time.Millisecond, 5*time.Millisecond)
			})
			first := openStream(t, s, "/v1/completions", `"prompt":"a","max_tokens":2,"guided_regex":"a"`)
			first.until(t, ": ping\n\n: ping\n\n")
			waiting := map[string]*openedStream{}
			for path, a := range aliveStreams {
				waiting[path] = openStream(t, s, path, a.body)
			}
			for path, a := range aliveStreams {
				waiting[path].until(t, a.ping, a.ping)
			}
			for queued, running := s.cfg.Scheduler.Load(); queued < len(aliveStreams) || running < 1; queued, running = s.cfg.Scheduler.Load() { // pings may begin before
				time.Sleep(time.Millisecond)
			}
			if resp, _ := s.post(t, "/v1/completions", `{"prompt":"a","stream":true}`, nil); resp != http.StatusTooManyRequests {
				t.Errorf("beyond the queue: status %d", resp)
			}
			if fails {
				go s.cfg.Scheduler.Close()
				for status := 0; status != http.StatusServiceUnavailable; {
					status, _ = s.post(t, "/v1/completions", `{"prompt":"a","stream":true}`, nil)
				}
			}
			close(g.open)
			for path, a := range aliveStreams {
				end := a.end
				if fails {
					end = a.failed
				}
				text := waiting[path].rest(t)
				begun := text
				for a.opening != a.ping && strings.HasPrefix(begun, a.ping) { // the check took long
					begun = begun[len(a.ping):]
				}
				if !strings.HasPrefix(begun, a.opening) || !strings.Contains(text[strings.LastIndex(text, a.ping)+len(a.ping)-2:], end) {
					t.Errorf("%s: expected %q, %q, then %q: %s", path, a.opening, a.ping, end, text)
				}
			}
		})
	}
}

// TestKeepAliveInSteps checks that a stream whose first step is slow sends pings: a long
// prefill, and a step with drafts.
func TestKeepAliveInSteps(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]string{
		"prefill": `"prompt":"` + strings.Repeat("a", 400) + `"`,
		"drafts":  `"prompt":"Hello","temperature":0,"speculate":"greedy"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := make(chan struct{})
			slow := func(s *device.Step) bool { return name == "prefill" || s.OutRows > 1 }
			s := start(t, func(c *server.Config, _ *scheduler.Options, e *engine.Options) {
				e.Draft, c.Drafter = 6, draftsGreedy
				server.SetPace(c, time.Millisecond, 5*time.Millisecond)
			}, func(d device.Device) device.Device { return slowDevice{d, slow, open} })
			stream := openStream(t, s, "/v1/completions", keys+`,"max_tokens":20`)
			stream.until(t, ": ping\n\n: ping\n\n: ping\n\n")
			close(open)
			if text := stream.rest(t); !strings.HasSuffix(text, "data: [DONE]\n\n") {
				t.Errorf("the stream ends with %.200q", text[max(0, len(text)-200):])
			}
		})
	}
}

// A slowDevice holds the steps that slow chooses until a channel is closed.
type slowDevice struct {
	device.Device
	slow func(s *device.Step) bool
	open chan struct{}
}

func (d slowDevice) Start(cfg *device.Config) (device.Context, error) {
	c, err := d.Device.Start(cfg)
	return slowContext{c, d}, err
}

type slowContext struct {
	device.Context
	slowDevice
}

func (c slowContext) Submit(s *device.Step) func() error {
	held := c.slow(s)
	wait := c.Context.Submit(s)
	return func() error {
		if held {
			<-c.open
		}
		return wait()
	}
}

// An openedStream is a stream that is being read.
type openedStream struct {
	path string
	body io.ReadCloser
	text bytes.Buffer
}

// openStream sends a request for a stream and waits for its header.
func openStream(t *testing.T, s *service, path, body string) *openedStream {
	t.Helper()
	resp, err := http.Post(s.URL+path, "application/json", strings.NewReader(`{`+body+`,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || kind != "text/event-stream" && kind != "application/x-ndjson" {
		t.Fatalf("%s: status %d, content type %s", path, resp.StatusCode, kind)
	}
	return &openedStream{path: path, body: resp.Body}
}

// until reads until the stream contains the texts, one after another.
func (s *openedStream) until(t *testing.T, texts ...string) {
	t.Helper()
	piece := make([]byte, 4096)
	for {
		rest, found := s.text.String(), true
		for _, text := range texts {
			var ok bool
			if _, rest, ok = strings.Cut(rest, text); !ok {
				found = false
			}
		}
		if found {
			return
		}
		n, err := s.body.Read(piece)
		s.text.Write(piece[:n])
		if err != nil {
			t.Fatalf("%s: %v after %s", s.path, err, s.text.String())
		}
	}
}

// rest reads the stream to its end and returns it whole.
func (s *openedStream) rest(t *testing.T) string {
	t.Helper()
	if _, err := s.text.ReadFrom(s.body); err != nil {
		t.Errorf("%s: %v", s.path, err)
	}
	return s.text.String()
}
