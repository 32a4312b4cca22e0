package main

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/tools/gen/clidoc"
)

//go:generate go test . -run ^TestManual$ -update-manual

var updateManual = flag.Bool("update-manual", false, "rewrite docs/reference/iflowc.md; read the difference")

// TestManual compares docs/reference/iflowc.md with the command line.
func TestManual(t *testing.T) {
	t.Parallel()
	parser, err := newParser()
	if err != nil {
		t.Fatal(err)
	}
	const path = "../../docs/reference/iflowc.md"
	want := "# iflowc\n\nGenerated from the command line by `go generate ./cmd/iflowc`; do not edit.\n" + clidoc.Markdown(parser.Model)
	if *updateManual {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/reference/iflowc.md is stale; run go generate ./cmd/iflowc:\n%s", diff)
	}
}
