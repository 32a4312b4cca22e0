package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/kit/completion"
)

var scriptSubcommand = regexp.MustCompile(`(?m)^  '([^']*)'\) names='([^']*)' flags='([^']*)' ;;$`)

// flagsOf reads a completion script for bash: each subcommand's flags.
func flagsOf(t *testing.T, script string) map[string]string {
	t.Helper()
	flags := map[string]string{}
	for _, m := range scriptSubcommand.FindAllStringSubmatch(script, -1) {
		subcommand, _, _ := strings.Cut(strings.TrimSpace(m[1]), " ")
		flags[subcommand] += " " + m[3] + " "
	}
	if len(flags) < 5 {
		t.Fatalf("%d subcommands in the script:\n%.2000s", len(flags), script)
	}
	return flags
}

// TestDocsFlags: the subcommands and flags of every call in the documentation, and in
// the examples that --help shows, exist.
func TestDocsFlags(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	parser, err := newParser()
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
	for subcommand := range have["BIN"] { // the examples of models leave the program out
		pages["BIN "+subcommand+" --help"] = strings.ReplaceAll(call(t, nil, demo(t), subcommand, "--help").stdout, "\n    "+subcommand+" ", "\n    BIN "+subcommand+" ")
	}
	seen := 0
	for page, text := range pages {
		for _, c := range pageCommands(page, text) {
			if have[c.program] == nil || c.subcommand == "" {
				continue
			}
			subcommand, _, _ := strings.Cut(c.subcommand, " ")
			flags, known := have[c.program][subcommand]
			if !known {
				if c.program == "iflowc" {
					t.Errorf("%s: iflowc has no subcommand %s: %s", page, c.subcommand, c.text)
				}
				continue // a program of the page, or a subcommand of models of another kind
			}
			seen++
			for _, flag := range c.flags {
				if !strings.Contains(flags, " "+flag+" ") && flag != "--help" {
					t.Errorf("%s: %s %s has no %s: %s", page, c.program, c.subcommand, flag, c.text)
				}
			}
		}
	}
	if seen < 80 {
		t.Errorf("only %d calls were found", seen)
	}
}
