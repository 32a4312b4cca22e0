package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCaret: a wrong specification's line is shown with a mark under the
// place; lines that cannot be shown are left out.
func TestCaret(t *testing.T) {
	t.Parallel()
	spec := filepath.Join(t.TempDir(), "wrong.yaml")
	folder, err := filepath.Abs("../../models/demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(spec, []byte("iflow: 1\nname: x\nmodel_dir: "+folder+"\nnetwork_structure: {type: decoder_onyl}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := iflowc(t, "check", spec)
	lines := strings.Split(got.stderr, "\n")
	if got.code != 2 || len(lines) < 3 || !strings.HasSuffix(lines[1], "4 | network_structure: {type: decoder_onyl}") {
		t.Fatalf("exit %d:\n%s", got.code, got.stderr)
	}
	if at := strings.Index(lines[2], "^") - strings.Index(lines[2], "| ") - 2; at != strings.Index("network_structure: {type: decoder_onyl}", "decoder_onyl") {
		t.Errorf("the mark is at %d:\n%s", at, got.stderr)
	}
	tabs := filepath.Join(t.TempDir(), "tabs")
	if err := os.WriteFile(tabs, []byte("a\n\té b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string]string{
		tabs + ":2:4: wrong": "    2 | \té b\n      | \t  ^\n",
		tabs + ":9:1: wrong": "", tabs + ":2:50: wrong": "", tabs + ": wrong": "", "none:1:1: wrong": "", tabs + ":2:0: wrong": "",
	} {
		if got := caret(message); got != want {
			t.Errorf("%s: %q, expected %q", message, got, want)
		}
	}
}
