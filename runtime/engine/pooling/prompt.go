package pooling

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// Prompt returns the text that the model's files put in front of a text: that of a use,
// such as query or document, or the default if name is empty.
func Prompt(m *manifest.Manifest, name string) (string, error) {
	e := m.Embedding
	if e == nil {
		e = &manifest.Embedding{}
	}
	if name == "" {
		return e.Prompts[e.Prompt], nil
	}
	if prompt, ok := e.Prompts[name]; ok {
		return prompt, nil
	}
	known := "it has none"
	if len(e.Prompts) > 0 {
		known = "known: " + strings.Join(slices.Sorted(maps.Keys(e.Prompts)), ", ")
	}
	return "", fmt.Errorf("%s has no prompt %q; %s", m.Name, name, known)
}

// Output returns the name of the graph's output that the pooling reads.
func Output(m *manifest.Manifest, pooling string) string {
	switch {
	case pooling == "pooler":
		return "pooled"
	case m.Embedding != nil && m.Embedding.Dense:
		return "embedding"
	}
	return "hidden"
}
