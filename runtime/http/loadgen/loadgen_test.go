package loadgen_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/http/loadgen"
)

// service returns a server that streams tokens at intervals of pause.
func service(t *testing.T, pause time.Duration, busy *atomic.Int64) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Prompt    string
			MaxTokens int `json:"max_tokens"`
			Model     string
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.Prompt == "refuse" || req.Model == "unknown" {
			http.Error(w, "no", http.StatusTooManyRequests)
			return
		}
		busy.Add(1)
		defer busy.Add(-1)
		for range req.MaxTokens {
			time.Sleep(pause)
			fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"a\"}]}\n\n")
			w.(http.Flusher).Flush()
		}
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", req.MaxTokens)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestRun(t *testing.T) {
	t.Parallel()
	var busy atomic.Int64
	s := service(t, 2*time.Millisecond, &busy)
	r, err := loadgen.Run(t.Context(), loadgen.Config{URL: s.URL, Requests: 6, Concurrency: 3, Prompt: 5, Output: 10, MaxTTFT: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if r.Answered != 6 || r.Tokens != 60 || r.TTFT.P50 < 2 || r.Latency.P50 < 20 || r.ITL.P99 < r.ITL.P50 || r.Goodput != r.RequestsS {
		t.Errorf("%+v", r)
	}
	if r, err = loadgen.Run(t.Context(), loadgen.Config{URL: s.URL, Models: []string{"a", "unknown", "b"}, Requests: 6, Concurrency: 1, Prompt: 5, Output: 1}); err != nil || r.Answered != 4 {
		t.Errorf("names in turn: %+v, %v", r, err)
	}
	r, err = loadgen.Run(t.Context(), loadgen.Config{URL: s.URL, Trace: []loadgen.Arrival{
		{Text: "x", MaxTokens: 3, Class: "a"}, {At: 0.05, Text: "refuse", Class: "b"}, {Text: "y", MaxTokens: 1000, Stop: 0.05},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Answered != 1 || r.Failed != 2 || r.Classes["a"].Tokens != 3 || r.Classes["b"].Statuses[429] != 1 {
		t.Errorf("%+v", r)
	}
	d := xml.NewDecoder(bytes.NewReader(r.Figure().SVG()))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	r.Print(io.Discard)
}
