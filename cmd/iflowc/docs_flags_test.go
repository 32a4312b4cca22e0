package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/iflowc/iflowc/runtime/kit/completion"
)

var scriptVerb = regexp.MustCompile(`(?m)^  '([^']*)'\) names='([^']*)' flags='([^']*)' ;;$`)

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

// TestDocsFlags: the verbs and flags of every call in the documentation, and in
// the examples that --help shows, exist.
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
	pages := documentation(t)
	for _, leaf := range parser.Model.Leaves(true) {
		pages["iflowc "+leaf.Name+" --help"] = strings.ReplaceAll(leaf.Detail, "\n", "\n  ")
	}
	for verb := range have["BIN"] { // the examples of models leave the program out
		pages["BIN "+verb+" --help"] = strings.ReplaceAll(call(t, nil, demo(t), verb, "--help").stdout, "\n    "+verb+" ", "\n    BIN "+verb+" ")
	}
	seen := 0
	for page, text := range pages {
		for _, c := range pageCommands(page, text) {
			if have[c.program] == nil || c.verb == "" {
				continue
			}
			verb, _, _ := strings.Cut(c.verb, " ")
			flags, known := have[c.program][verb]
			if !known {
				if c.program == "iflowc" {
					t.Errorf("%s: iflowc has no verb %s: %s", page, c.verb, c.text)
				}
				continue // a program of the page, or a verb of models of another kind
			}
			seen++
			for _, flag := range c.flags {
				if !strings.Contains(flags, " "+flag+" ") && flag != "--help" {
					t.Errorf("%s: %s %s has no %s: %s", page, c.program, c.verb, flag, c.text)
				}
			}
		}
	}
	if seen < 80 {
		t.Errorf("only %d calls were found", seen)
	}
}
