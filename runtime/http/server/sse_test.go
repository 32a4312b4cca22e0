//go:build unix

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilence checks when a stream begins and when it sends pings.
func TestSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		out := (&Server{cfg: Config{pace: defaultPace}}).newSender(w, httptest.NewRequest("POST", "/v1/messages", nil), true)
		defer out.close(nil)
		sent := ""
		after := func(d time.Duration, want string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			out.mu.Lock()
			now := w.Body.String()
			out.mu.Unlock()
			if more := now[len(sent):]; more != want {
				t.Errorf("sent %q, expected %q", more, want)
			}
			sent = now
		}
		const ping, moment = "event: ping\ndata: {\"type\":\"ping\"}\n\n", time.Millisecond
		after(defaultPace.silence-moment, "") // the request is being checked
		out.event("start", 1)
		out.admitted()
		after(defaultPace.opening-moment, "")
		after(moment, "event: start\ndata: 1\n\n")
		after(defaultPace.silence-moment, "")
		after(moment, ping)
		after(defaultPace.silence, ping)
		time.Sleep(3 * time.Second)
		out.add(2)
		out.flush()
		after(defaultPace.silence-moment, "data: 2\n\n")
		after(moment, ping)
		if !out.close(failure(errors.New("broken"))) {
			t.Error("the stream has not begun")
		}
		after(time.Minute, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"broken\"}}\n\n")
	})
}

// TestLongCheck checks that the stream of a request that takes long to check is kept
// alive, and that one that fails at once gets a status.
func TestLongCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Server{cfg: Config{pace: defaultPace}}
		for took, want := range map[time.Duration]string{
			4 * time.Second: "400 {\"error\":{\"message\":\"no\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}\n",
			9 * time.Second: "200 : ping\n\nevent: error\ndata: {\"type\":\"error\",\"sequence_number\":0,\"code\":\"invalid_request_error\",\"message\":\"no\",\"param\":null}\n\n",
		} {
			w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/v1/responses", nil)
			s.answer(func(w http.ResponseWriter, r *http.Request) error {
				s.newSender(w, r, true)
				time.Sleep(took)
				return invalid("", "no")
			}).ServeHTTP(&exchange{ResponseWriter: w}, r)
			if got := fmt.Sprintf("%d %s", w.Code, w.Body); got != want {
				t.Errorf("after %v: %q, expected %q", took, got, want)
			}
		}
	})
}

// TestStreamFlag checks which bodies ask for a stream, before they are decoded.
func TestStreamFlag(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"stream":true}`: true, ` { "a" : [ {} ] , "stream" : true , "b" : 1 }`: true, `{"stream":false}`: false, `{"stream":null}`: false, `{}`: false,
		`{"a":{"stream":true}}`: false, `{"a":["stream",true]}`: false, `{"a":"\"stream\":true"}`: false, `{"a":"stream","b":true}`: false, `{"a":"\\","stream":true}`: true,
		`{"stream":true,"stream":false}`: false, `{"stream"`: false, `{"stream`: false, `{"stream\`: false, `{"stream":`: false, "": false,
	} {
		if got, _ := flag([]byte(body), "stream"); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}

// TestWaitToDecode checks that a stream is kept alive while its body waits to be decoded.
func TestWaitToDecode(t *testing.T) {
	t.Parallel()
	s := &Server{cfg: Config{Model: "m", pace: defaultPace}}
	for path, c := range map[string]struct {
		request streamer
		body    string
		want    bool
	}{
		"/v1/chat/completions": {&chatRequest{}, `{"stream":true}`, true}, "/v1/completions": {&completionRequest{}, `{}`, false}, "/infill": {&infillRequest{}, `{"stream":true}`, true},
		"/v1/messages": {&messagesRequest{}, `{"stream":true}`, true}, "/v1/messages/count_tokens": {&messagesRequest{}, `{"stream":true}`, false}, "/v1/responses": {&responsesRequest{}, `{"stream":false}`, false},
		"/api/chat": {&ollamaChatRequest{}, `{}`, true}, "/api/generate": {&ollamaGenerateRequest{}, `{"stream":false}`, false}, "/inferflow": {&inferflowRequest{}, `{"is_streaming_mode":true}`, true},
	} {
		x := &exchange{ResponseWriter: httptest.NewRecorder()}
		r := httptest.NewRequest("POST", path, nil)
		r = r.WithContext(context.WithValue(r.Context(), arrivalKey{}, arrival{x: x}))
		s.keepAlive(r, c.request, []byte(c.body))
		if (x.out != nil) != c.want {
			t.Errorf("%s %s: kept alive: %v", path, c.body, x.out != nil)
		}
		if out := s.newSender(x, r, c.want); c.want && out != x.out {
			t.Errorf("%s: two senders", path)
		}
		x.out.close(nil)
	}
}
