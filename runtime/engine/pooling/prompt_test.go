package pooling

import (
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

func TestPrompt(t *testing.T) {
	t.Parallel()
	m := &manifest.Manifest{Name: "m", Embedding: &manifest.Embedding{Prompts: map[string]string{"query": "q: ", "document": ""}, Prompt: "query"}}
	for name, want := range map[string]string{"": "q: ", "query": "q: ", "document": ""} {
		if got, err := Prompt(m, name); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", name, got, err, want)
		}
	}
	if _, err := Prompt(m, "passage"); err == nil || err.Error() != `m has no prompt "passage"; known: document, query` {
		t.Error(err)
	}
	if got, err := Prompt(&manifest.Manifest{}, ""); got != "" || err != nil {
		t.Errorf("%q, %v, want none", got, err)
	}
}

func TestOutput(t *testing.T) {
	t.Parallel()
	dense := &manifest.Manifest{Embedding: &manifest.Embedding{Dense: true}}
	for _, c := range []struct {
		m             *manifest.Manifest
		pooling, want string
	}{{&manifest.Manifest{}, "mean", "hidden"}, {dense, "last", "embedding"}, {dense, "pooler", "pooled"}} {
		if got := Output(c.m, c.pooling); got != c.want {
			t.Errorf("%s: %s, want %s", c.pooling, got, c.want)
		}
	}
}
