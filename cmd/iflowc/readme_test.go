package main

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// fenced gives the code blocks of a page, by language and order.
func fenced(page, language string) []string {
	var out []string
	for _, part := range strings.Split("\n"+page, "\n```"+language+"\n")[1:] {
		body, _, _ := strings.Cut(part, "\n```")
		out = append(out, body)
	}
	return out
}

// TestReadme compares the model spec and the IR in README.md with those of the
// demo model, and the page with its limits: 120 lines of 120 characters.
func TestReadme(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(page), "\n"), "\n")
	if len(lines) > 120 {
		t.Errorf("README.md has %d lines", len(lines))
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > 120 {
			t.Errorf("README.md:%d has %d characters", i+1, n)
		}
	}
	yaml, err := os.ReadFile(demoSpec)
	if err != nil {
		t.Fatal(err)
	}
	var spec []string
	for line := range strings.SplitSeq(string(yaml), "\n") {
		if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) != "" {
			spec = append(spec, strings.TrimRight(line, " "))
		}
	}
	if shown := fenced(string(page), "yaml"); len(shown) == 0 || shown[0] != strings.Join(spec, "\n") {
		t.Errorf("README.md shows another model spec than %s", demoSpec)
	}
	_, rest, _ := strings.Cut(string(page), "Its IR")
	blocks := fenced(rest, "")
	if len(blocks) == 0 {
		t.Fatal("README.md shows no IR")
	}
	ir := iflowc(t, "ir", demoSpec, "--after", "fuse-regions").succeed(t)
	for line := range strings.SplitSeq(blocks[0], "\n") {
		if strings.TrimSpace(line) != "…" && !strings.Contains(ir, line+"\n") {
			t.Errorf("README.md shows a line that iflowc ir does not print: %s", line)
		}
	}
}
