package main

import (
	"os"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/templates"
)

// TestPageFresh checks that docs/kernels.md is the output of go generate ./tools/gen/kerneldoc.
func TestPageFresh(t *testing.T) {
	cat, err := templates.Load()
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := templates.LoadCUDA()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../docs/kernels.md")
	if err != nil {
		t.Fatal(err)
	}
	text := page(cat, gpu)
	if string(got) != text {
		t.Error("docs/kernels.md is stale; run go generate ./tools/gen/kerneldoc")
	}
	for _, k := range gpu.Kernels() {
		if !strings.Contains(text, "### "+k.Name+"\n") {
			t.Errorf("no section for %s", k.Name)
		}
	}
	for _, k := range cat.Kernels() {
		if !strings.Contains(text, "## "+k.Name+"\n") {
			t.Errorf("no section for %s", k.Name)
		}
	}
}
