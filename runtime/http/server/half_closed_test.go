//go:build unix

package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestHalfClosed checks that clients that close their side of the connection read a status
// and an error, and no empty success.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	s := apis(t)
	for body, want := range map[string]int{
		`{"prompt":"a","max_tokens":`:                          400, // cut off
		`{"prompt":"a","max_tokens":100000,"ignore_eos":true}`: 499,
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		length := "100" // of a cut body
		if strings.HasSuffix(body, "}") {
			length = "52"
		}
		if _, err := conn.Write([]byte("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + length + "\r\n\r\n" + body)); err != nil {
			t.Fatal(err)
		}
		conn.(*net.TCPConn).CloseWrite()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want || resp.ContentLength == 0 {
			t.Errorf("%s: status %d, %d bytes; want %d", body, resp.StatusCode, resp.ContentLength, want)
		}
		resp.Body.Close()
	}
}

// TestTwoLengths checks that a request with a length and chunks ends its connection, so
// that what a proxy takes for the next client's request is not read as one.
func TestTwoLengths(t *testing.T) {
	t.Parallel()
	s := apis(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"prompt":"a","max_tokens":1}`
	if _, err := fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", len(body), body); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil || strings.Count(string(text), "HTTP/1.1 ") != 1 || !strings.Contains(string(text), "HTTP/1.1 200 ") || !strings.Contains(string(text), "Connection: close\r\n") {
		t.Errorf("%q, %v", text, err)
	}
}
