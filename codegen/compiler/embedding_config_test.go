package compiler

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/spec"
)

func TestLabels(t *testing.T) {
	t.Parallel()
	if got := labels(map[string]any{"1": "b", "0": "a"}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("labels %v, want [a b]", got)
	}
	for _, bad := range []any{nil, "x", map[string]any{"0": "a", "2": "b"}, map[string]any{"x": "a"}, map[string]any{"0": 1.0}, map[string]any{"-1": "a"}} {
		if got := labels(bad); len(got) != 0 {
			t.Errorf("labels of %v are %v, want none", bad, got)
		}
	}
}

// TestActivation checks where the versions of sentence-transformers store the activation.
func TestActivation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config map[string]any
		file   string
		want   string
	}{
		{nil, "", ""},
		{map[string]any{"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}, "", "Identity"},
		{map[string]any{"sentence_transformers": map[string]any{"activation_fn": "torch.nn.modules.activation.Sigmoid"}}, `{"prompts":{}}`, "Sigmoid"},
		{map[string]any{"sentence_transformers": map[string]any{"version": "4"}, "sbert_ce_default_activation_function": 7}, "", ""},
		{map[string]any{"sentence_transformers": map[string]any{"activation_fn": "Sigmoid"}}, `{"activation_fn":"torch.nn.modules.activation.Tanh"}`, "Tanh"},
	} {
		m := &Model{Model: &spec.Model{Spec: &spec.Spec{ModelDir: t.TempDir(), Config: c.config}}}
		if c.file != "" {
			if err := os.WriteFile(filepath.Join(m.Spec.ModelDir, "config_sentence_transformers.json"), []byte(c.file), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := m.activation(); got != c.want || err != nil {
			t.Errorf("%v %s: %q, %v, want %q", c.config, c.file, got, err, c.want)
		}
	}
}

func TestPoolingOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config map[string]any
		want   string
	}{
		{map[string]any{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}, "cls"},
		{map[string]any{"pooling_mode_lasttoken": true}, "last"},
		{map[string]any{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}, ""},
		{map[string]any{"pooling_mode": "lasttoken", "embedding_dimension": 1024.0}, "last"},
		{map[string]any{}, "mean"},
	} {
		if got := poolingName(spec.SentencePooling(c.config)); got != c.want {
			t.Errorf("%v: %q, want %q", c.config, got, c.want)
		}
	}
}
