package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/iflowc/iflowc/runtime/completion"
)

// A documented is a call of a program as a page shows it.
type documented struct{ program, verb, flags string }

// calls finds the calls of iflowc and of compiled models in a page's blocks, of
// any kind: those that tests run, and those with words to fill in.
func calls(page string) (found []documented) {
	block := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			block = !block
			continue
		}
		if !block && !strings.HasPrefix(line, "    ") {
			continue
		}
		line, _, _ = strings.Cut(line, " # ")
		for _, part := range strings.FieldsFunc(line, func(r rune) bool { return r == '|' || r == ';' || r == '&' }) {
			words := strings.Fields(part)
			for len(words) > 0 && strings.Contains(words[0], "=") { // of the environment
				words = words[1:]
			}
			if len(words) < 2 {
				continue
			}
			program := words[0]
			if program == "BIN" || strings.HasPrefix(program, "./") && !strings.Contains(program[2:], "/") {
				program = "BIN"
			}
			if program == "iflowc" || program == "BIN" {
				found = append(found, documented{program, words[1], part})
			}
		}
	}
	return found
}

var (
	flagWord   = regexp.MustCompile(`--[a-z][a-z0-9-]*`)
	scriptVerb = regexp.MustCompile(`(?m)^  '([^']*)'\) names='([^']*)' flags='([^']*)' ;;$`)
)

// flagsOf reads a completion script for bash: each verb's flags.
func flagsOf(t *testing.T, script string) map[string]string {
	t.Helper()
	flags := map[string]string{}
	for _, m := range scriptVerb.FindAllStringSubmatch(script, -1) {
		verb, _, _ := strings.Cut(strings.TrimSpace(m[1]), " ")
		flags[verb] += " " + m[3] + " "
	}
	if len(flags) < 5 {
		t.Fatalf("%d verbs in the script:\n%.2000s", len(flags), script)
	}
	return flags
}

// TestDocsFlags: the verbs and flags of every call in the documentation exist.
func TestDocsFlags(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	parser, err := kong.New(&commands{}, kong.Name("iflowc"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := completion.Script("bash", "iflowc", parser.Model, nil)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]map[string]string{
		"iflowc": flagsOf(t, own),
		"BIN":    flagsOf(t, call(t, nil, demo(t), "completion", "bash").succeed(t)),
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, path := range append(pages, "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range calls(string(text)) {
			flags, known := have[c.program][c.verb]
			if !known && c.verb[0] != '-' {
				if c.program == "iflowc" {
					t.Errorf("%s: iflowc has no verb %s: %s", path, c.verb, strings.TrimSpace(c.flags))
				}
				continue // a program of the page, or a verb of models of another kind
			}
			seen++
			for _, flag := range flagWord.FindAllString(c.flags, -1) {
				if !strings.Contains(flags, " "+flag+" ") && flag != "--help" {
					t.Errorf("%s: %s %s has no %s: %s", path, c.program, c.verb, flag, strings.TrimSpace(c.flags))
				}
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d calls were found", seen)
	}
}
