package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestTimeline: docs/benchmarks/data/timeline.json is what the policy does today,
// and every request gets its tokens in it.
func TestTimeline(t *testing.T) {
	t.Parallel()
	line := timeline(model(t))
	computed := make([]int, len(line.Requests))
	for _, s := range line.Steps {
		for _, p := range s.Parts {
			computed[p.Request] += p.Tokens + p.Cached
		}
		if s.Used+s.Kept > line.Pages {
			t.Errorf("%d and %d pages of %d at %v ms", s.Used, s.Kept, line.Pages, s.At)
		}
	}
	for i, q := range line.Requests {
		if want := q.Prompt + q.Output - 1; computed[i] != want { // the last token is not read
			t.Errorf("request %d: %d tokens computed, want %d", i, computed[i], want)
		}
	}
	path := filepath.Join(t.TempDir(), "timeline.json")
	if err := writeTimeline(path, line); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if have, err := os.ReadFile("../../../docs/benchmarks/data/timeline.json"); err != nil || !bytes.Equal(have, want) {
		t.Errorf("docs/benchmarks/data/timeline.json is stale (%v): run go generate ./tools/gen/figures", err)
	}
}
