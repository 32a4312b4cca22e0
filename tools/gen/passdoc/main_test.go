package main

import (
	"os"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/passes"
)

// docs/passes.md is what go generate ./tools/gen/passdoc writes.
func TestPageFresh(t *testing.T) {
	got, err := os.ReadFile("../../../docs/passes.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page(passes.Pipeline) {
		t.Error("docs/passes.md is stale; run go generate ./tools/gen/passdoc")
	}
}

func TestPage(t *testing.T) {
	text := page([]*passes.Pass{{Name: "a", Doc: "Does a."}, {Name: "b", Doc: "Does b.", Tolerance: 0.25}})
	for _, want := range []string{"## 1. a\n\nDoes a.\n", "## 2. b\n\nDoes b.\n", "at most 0.25"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}
