package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

// quietModel is a model whose notices nobody reads.
func quietModel() *model { return &model{Process: &Process{Stderr: io.Discard}} }

// TestHostileConversations: files that are no saved conversation, which /load refuses.
func TestHostileConversations(t *testing.T) {
	for what, c := range map[string][2]string{
		"lists":     {strings.Repeat("[", 1<<16), "max depth"},
		"no list":   {`{"role": "user"}`, "is not a saved conversation"},
		"no text":   {`[{"role": "user", "content": [1]}]`, "is not a saved conversation"},
		"cut off":   {`[{"role": "user", "content": "x"`, "is not a saved conversation"},
		"too large": {strings.Repeat(" ", maxConversation+1), "larger than 8388608 bytes"},
	} {
		path := hostiletest.File(t, "c.json", []byte(c[0]))
		t.Run(what, func(t *testing.T) {
			hostiletest.Refused(t, len(c[0]), func() error { return (&chatSession{m: quietModel()}).load(path) }, path, c[1])
		})
	}
}

// FuzzConversation loads any file as a saved conversation, saves it and loads it again.
func FuzzConversation(f *testing.F) {
	f.Add([]byte(`[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &chatSession{m: quietModel()}
		path := hostiletest.File(t, "c.json", data)
		if hostiletest.Read(t, len(data), func() error { return s.load(path) }) != nil {
			return
		}
		n := len(s.messages)
		if err := s.save(path); err != nil {
			t.Fatal(err)
		}
		if err := s.load(path); err != nil || len(s.messages) != n {
			t.Fatalf("%d messages, %d after saving: %v", n, len(s.messages), err)
		}
	})
}

// FuzzTrace reads any file as the requests of bench-serve.
func FuzzTrace(f *testing.F) {
	f.Add([]byte("{\"at\": 0, \"max_tokens\": 3, \"prompt\": \"a\"}\n\n{\"at\": 0.5, \"max_tokens\": 1}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := hostiletest.File(t, "trace.jsonl", data)
		_ = hostiletest.Read(t, len(data), func() error {
			list, err := readTrace(path)
			for i, a := range list {
				if a.MaxTokens < 1 || a.At < 0 || i > 0 && a.At < list[i-1].At {
					t.Fatalf("request %d: %+v", i, a)
				}
			}
			return err
		})
	})
}
