package main

import (
	"os"
	"regexp"
	"testing"
)

// TestPage checks that the committed page matches the schema and that every key is described.
func TestPage(t *testing.T) {
	t.Parallel()
	want, err := page()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../docs/reference/spec.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/reference/spec.md is stale; run go generate ./tools/gen/specdoc")
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`\\S+`) .*\\|  \\|$").FindAllStringSubmatch(want, -1) {
		t.Errorf("%s has no description: add a comment after the field in package spec", row[1])
	}
}
