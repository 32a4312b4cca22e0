//go:build unix

package server_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/klauspost/compress/zstd"
)

// coders write the content codings that the service reads.
var coders = map[string]func(w io.Writer) (io.WriteCloser, error){
	"gzip":        func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	"X-GZIP":      func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	"deflate":     func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil },
	"deflate raw": func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, 6) },
	"zstd": func(w io.Writer) (io.WriteCloser, error) {
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<16), zstd.WithLowerEncoderMem(true))
	},
	"identity": func(w io.Writer) (io.WriteCloser, error) { return nopCloser{w}, nil },
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func encoded(t *testing.T, coder, body string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := coders[coder](&b)
	if err == nil {
		_, err = io.WriteString(w, body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestContentEncoding checks that compressed bodies are read, that their limit applies to
// the decoded bytes, and that broken ones and unknown codings are refused.
func TestContentEncoding(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) { c.Body = limit })
	ask := func(coding string, body []byte) (status int, message string, h http.Header) {
		t.Helper()
		req, err := http.NewRequest("POST", s.URL+"/v1/completions", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Encoding", coding)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var c completion
		if err := json.NewDecoder(resp.Body).Decode(&c); err != nil {
			t.Fatal(err)
		}
		if c.Error != nil {
			message = c.Error.Message
		}
		return resp.StatusCode, message, resp.Header
	}
	const body = `{"prompt":"a","max_tokens":1}`
	for coder := range coders {
		name, _, _ := strings.Cut(coder, " ")
		if status, message, _ := ask(name, encoded(t, coder, body)); status != 200 {
			t.Errorf("%s: status %d, %s", coder, status, message)
		}
		bomb := encoded(t, coder, body+strings.Repeat(" ", 128<<10))
		if status, message, _ := ask(name, bomb); status != 413 || !strings.Contains(message, "65536 bytes") {
			t.Errorf("%s: a bomb: status %d, %s", coder, status, message)
		}
		if cut := encoded(t, coder, body); name != "identity" {
			if status, message, _ := ask(name, cut[:len(cut)/2]); status != 400 || !strings.Contains(message, "not valid "+strings.TrimPrefix(strings.ToLower(name), "x-")) {
				t.Errorf("%s: half a body: status %d, %s", coder, status, message)
			}
		}
	}
	for _, coding := range []string{"br", "gzip, zstd", "zstd,identity", "aes128gcm"} {
		status, message, h := ask(coding, []byte(body))
		if status != 415 || !strings.Contains(message, "Content-Encoding: \""+coding) || h.Get("Accept-Encoding") != "gzip, deflate, zstd" {
			t.Errorf("%s: status %d, %s, %v", coding, status, message, h)
		}
	}
	for coder := range coders { // much that decodes to nothing
		name, _, _ := strings.Cut(coder, " ")
		empty := encoded(t, coder, "")
		many := append(bytes.Repeat(empty, limit/2/max(1, len(empty))), encoded(t, coder, body)...)
		if status, message, _ := ask(name, many); status != 200 && status != 400 || name == "zstd" && status != 200 {
			t.Errorf("%s: empty parts: status %d, %s", coder, status, message)
		}
	}
	huge := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa0, 0x01, 0x00, 0x00} // a frame with a window of 1 GB
	if status, message, _ := ask("zstd", huge); status != 400 || !strings.Contains(message, "zstd") {
		t.Errorf("a huge window: status %d, %s", status, message)
	}
}
