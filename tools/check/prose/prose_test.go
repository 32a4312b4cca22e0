package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProject: the project's text holds no retired phrase and no sentence that is
// too long.
func TestProject(t *testing.T) {
	t.Parallel()
	found, err := check("../../..", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// TestFindings: each kind of file is split so that faults in its prose are found,
// on the right line, and its code is left alone.
func TestFindings(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", maxWords) + "end"
	for name, c := range map[string]struct{ text, want string }{
		"phrase.md":     {"# Title\n\nThe team's threads.\n", "phrase.md:3: thread pool"},
		"broken.md":     {"All of the keys and values\nare read in\nturns.\n", "broken.md:1: interleaved"},
		"long.md":       {"Short.\n\n- " + long + ".\n", "long.md:3: a sentence of 46 words"},
		"table.md":      {"| " + long + " |\n", ""},
		"fenced.md":     {"Run it:\n\n```sh\n# in turns\n```\n", ""},
		"comment.go":    {"package p\n\n// F is read in turns.\nfunc F() {}\n", "comment.go:3: interleaved"},
		"literal.go":    {"package p\n\nconst s = \"tokens a second\"\n", "literal.go:3: per second"},
		"sentence.go":   {"package p\n\n// F is " + long + ".\nfunc F() {}\n", "sentence.go:3: a sentence of 48 words"},
		"code.go":       {"package p\n\n// F is:\n//\n//\tin turns\nfunc F() {}\n", ""},
		"identifier.go": {"package p\n\nvar specifications int\n", ""},
		"kernel.c":      {"// read in\n// turns\nint x;\n", "kernel.c:1: interleaved"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			found, err := check(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(found, "\n")
			where, what, _ := strings.Cut(c.want, ": ")
			if c.want == "" && got != "" || !strings.HasPrefix(got, where) || !strings.Contains(got, what) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
