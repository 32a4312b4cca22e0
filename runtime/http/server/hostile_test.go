//go:build unix

package server_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/text/grammar"
	"github.com/iflowc/iflowc/tools/check/selfsigned"
)

// nested nests a text n times.
func nested(n int, open, inner, shut string) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
}

// hostileConstraints are constraints that would take very long without limits, as keys
// of a request.
func hostileConstraints(t *testing.T) map[string]string {
	schema := func(text string) string {
		return `"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":` + text + `}}`
	}
	quoted := func(key, text string) string {
		data, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%q:%s", key, data)
	}
	wide := make([]string, 3000)
	for i := range wide {
		wide[i] = fmt.Sprintf(`"k%d":{"type":"string","maxLength":1000}`, i)
	}
	refs := `"d0":{"type":"integer"}`
	for i := 1; i < 40; i++ { // each twice as large as the one before
		refs += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i-1, i-1)
	}
	return map[string]string{
		"deep schema":      schema(nested(40, `{"type":"array","items":`, `{}`, `}`)),
		"deeper than JSON": schema(nested(200, `{"items":`, `{}`, `}`)),
		"deep anyOf":       schema(nested(30, `{"anyOf":[{"type":"string"},`, `{}`, `]}`)),
		"wide schema":      schema(`{"type":"object","properties":{` + strings.Join(wide, ",") + `}}`),
		"doubling refs":    schema(`{"$ref":"#/$defs/d39","$defs":{` + refs + `}}`),
		"endless ref":      schema(`{"$ref":"#"}`),
		"huge bounds":      schema(`{"type":"array","minItems":1000000000,"items":{"type":"string","minLength":1000000000}}`),
		"backtracking":     quoted("guided_regex", `(a+)+(a+)+(a*)*$b`),
		"nested counts":    quoted("guided_regex", nested(6, "(", "a", "{1,1000}){1,1000}")),
		"alternatives":     quoted("guided_regex", `(a|a)*(a|aa)*(a|b|ab)*c`),
		"deep groups":      quoted("guided_regex", nested(5000, "(", "a", ")")),
		"left recursion":   quoted("grammar", "root ::= root root | \"a\""),
		"empty loops":      quoted("grammar", "root ::= (((\"\")*)*)* \"a\"* root?"),
		"deep grammar":     quoted("grammar", "root ::= "+nested(5000, "(", "\"a\"", ")")),
	}
}

// constrainLetters returns masks of the test's letters.
func constrainLetters(t *testing.T) func(server.Constraint) (decode.Mask, error) {
	maker := grammar.NewMaker(devicetest.Vocab, letters(t).Bytes, []int32{devicetest.EOS})
	return func(f server.Constraint) (m decode.Mask, err error) {
		switch f.Kind {
		case "json_schema":
			m, err = maker.Schema(f.Schema)
		case "regex":
			m, err = maker.Regex(f.Text)
		default:
			m, err = maker.GBNF(f.Text)
		}
		if err != nil {
			return nil, err
		}
		return m, nil
	}
}

// TestHostileConstraints checks that such constraints are answered or refused quickly
// and with little memory.
func TestHostileConstraints(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) { c.Constrain = constrainLetters(t) })
	for name, constraint := range hostileConstraints(t) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		var c completion
		status, _ := s.post(t, "/v1/completions", `{"prompt":"a","max_tokens":4,`+constraint+`}`, &c)
		runtime.ReadMemStats(&after)
		if status != 200 && status != 400 {
			t.Errorf("%s: status %d, %+v", name, status, c.Error)
		}
		if took := time.Since(begun); took > 2*time.Minute { // usually a second, but more on a slow machine
			t.Errorf("%s: took %v", name, took)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 {
			t.Errorf("%s: allocated %d MB", name, used>>20)
		}
	}
}

// TestTLS checks that a service with a certificate accepts only HTTPS.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	cert, err := selfsigned.Write(t.TempDir(), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	l := server.Listening{Address: "127.0.0.1:0", Cert: cert.File, Key: cert.KeyFile}
	listener, err := l.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.New(withoutCounts(s.cfg)).Run(ctx, listener, l) }()
	client := func(versions ...uint16) *http.Client {
		c := &tls.Config{RootCAs: cert.Pool}
		if len(versions) > 0 {
			c.MaxVersion = versions[0]
		}
		return &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
	}
	url := "https://" + listener.Addr().String() + "/v1/completions"
	const body = `{"prompt":"a","max_tokens":3,"stream":true}`
	resp, err := client().Post(url, "application/json", strings.NewReader(body))
	if err != nil || resp.StatusCode != 200 || resp.TLS == nil {
		t.Fatalf("%v %v", resp, err)
	}
	resp.Body.Close()
	if _, err := client(tls.VersionTLS11).Post(url, "application/json", strings.NewReader(body)); err == nil {
		t.Error("TLS 1.1 was spoken")
	}
	if _, err := http.Post(url, "application/json", strings.NewReader(body)); err == nil {
		t.Error("an unknown certificate was trusted")
	}
	if resp, err := http.Post(strings.Replace(url, "https", "http", 1), "application/json", strings.NewReader(body)); err == nil {
		if resp.Body.Close(); resp.StatusCode != 400 {
			t.Errorf("without TLS: status %d", resp.StatusCode)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestHostileConversations checks that conversations of very many parts are refused
// quickly.
func TestHostileConversations(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	uses := strings.Repeat(`{"type":"tool_use","id":"1","name":"f","input":{}},`, 4000) + `{"type":"text","text":"a"}`
	results := strings.Repeat(`{"type":"tool_result","tool_use_id":"1","content":""},`, 4000) + `{"type":"text","text":"a"}`
	for path, body := range map[string]string{
		"/v1/messages":         `{"max_tokens":1,"messages":[{"role":"user","content":[` + strings.Repeat(`{},`, 1<<20) + `{}]}]}`,
		"/v1/messages?":        `{"max_tokens":1,"messages":[{"role":"assistant","content":[` + uses + `]},{"role":"user","content":[` + results + `]}]}`,
		"/v1/responses":        `{"input":[` + strings.Repeat(`{"role":"system","content":"`+strings.Repeat("x", 900)+`"},`, 4000) + `{"role":"user","content":"a"}]}`,
		"/api/chat":            `{"messages":[` + strings.Repeat(`{},`, 1<<20) + `{}]}`,
		"/v1/chat/completions": `{"messages":[` + strings.Repeat(`{},`, 1<<20) + `{}]}`,
	} {
		begun := time.Now()
		var got struct{ Error any }
		if status, _ := s.post(t, path, body, &got); status != 400 {
			t.Errorf("%s: status %d, %v", path, status, got.Error)
		}
		if took := time.Since(begun); took > 20*time.Second { // usually a tenth of a second
			t.Errorf("%s: took %v", path, took)
		}
	}
}

// TestPriorKnowledge checks that HTTP/2 without TLS is refused at once.
func TestPriorKnowledge(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) || !strings.HasPrefix(string(answer), "HTTP/1.1 505 ") || !strings.Contains(string(answer), "HTTP/2 needs TLS") {
		t.Errorf("%q, %v", answer, err)
	}
}
