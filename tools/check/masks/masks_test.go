package main

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

//go:embed cases.json
var cases []byte

// TestCases samples a text of each schema, and measures it.
func TestCases(t *testing.T) {
	t.Parallel()
	var list []struct {
		Name, Kind string
		Source     json.RawMessage
	}
	if err := json.Unmarshal(cases, &list); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "v.tiktoken")
	var words strings.Builder
	for i, w := range append(bytesAndEnds(), `{"`, `":`, `", "`, "name", "12", "true", " the", "é", "\xe6\xbc") {
		fmt.Fprintf(&words, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(w)), i)
	}
	if err := os.WriteFile(path, []byte(words.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		sample, err := json.Marshal(command{Kind: c.Kind, Source: c.Source, Seed: 1, Tokens: 80})
		if err != nil {
			t.Fatal(err)
		}
		r := runOne(t, path, string(sample))
		if len(r.Text) == 0 {
			t.Errorf("%s: no text", c.Name)
			continue
		}
		again, err := json.Marshal(command{Kind: c.Kind, Source: c.Source, Text: r.Text})
		if err != nil {
			t.Fatal(err)
		}
		if m := runOne(t, path, string(again)); len(m.Cold) != len(r.Text) || len(m.Warm) != len(r.Text) || m.Compile <= 0 || slices.Min(m.Cold) <= 0 {
			t.Errorf("%s: %d tokens, times %d and %d, compilation %d", c.Name, len(r.Text), len(m.Cold), len(m.Warm), m.Compile)
		}
	}
}

func bytesAndEnds() []string {
	var list []string
	for b := range 256 {
		list = append(list, string([]byte{byte(b)}))
	}
	return append(list, `"}`, `"]`, `}]`, `]}`, `"`)
}

// runOne returns the result of one command.
func runOne(t *testing.T, path, line string) result {
	t.Helper()
	var out strings.Builder
	if err := run(path, "", strings.NewReader(line), &out); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(out.String(), "\n")
	var r result
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestErrors lists inputs that are refused, with a part of the message.
func TestErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"good.tiktoken": "YQ== 0\n", "order.tiktoken": "YQ== 1\n", "text.tiktoken": "a! 0\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ file, line, want string }{
		{"order.tiktoken", "", "order.tiktoken:1: expected a token in base64 and the id 0"},
		{"text.tiktoken", "", "text.tiktoken:1: expected a token in base64"},
		{"missing.gguf", "", "missing.gguf"},
		{"good.tiktoken", `{"kind":"x"}`, `kind "x"`},
		{"good.tiktoken", `{"kind":"regex","source":"a","text":[64]}`, "token 0 of the text is 64: out of range"},
		{"good.tiktoken", `{"kind":"regex","source":"a","text":[1]}`, "does not allow it"},
	} {
		err := run(filepath.Join(dir, c.file), "", strings.NewReader(c.line), &strings.Builder{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %s", c.file, c.line, err, c.want)
		}
	}
}
