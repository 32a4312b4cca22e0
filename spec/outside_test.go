package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asUnknown copies a tiny model under an architecture that nobody knows.
func asUnknown(t *testing.T, model string) string {
	t.Helper()
	return changedFolder(t, model, map[string]any{"model_type": "novel", "architectures": []any{"NovelForCausalLM"}})
}

// TestNearestFamilies checks that the error of an unknown architecture names the families
// that read most of the model's tensors, and what they do not read.
func TestNearestFamilies(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		"llama":       "llama (reads all of its tensors; compare the computation); qwen2 (",
		"qwen3":       "llama (reads all of its tensors; compare the computation); qwen2 (",
		"qwen2":       "llama (reads all of its tensors; compare the computation); qwen2 (",
		"gpt_oss":     "gpt_oss (reads all",
		"qwen3_moe":   "qwen3_moe (reads all",
		"mamba2":      "mamba2 (reads all",
		"olmo_hybrid": "olmo_hybrid (reads all",
		"zamba2":      "zamba2 (reads all",
	} {
		_, err := Load(asUnknown(t, model), Options{})
		for _, part := range []string{`unknown architecture "novel"; nearest families: ` + want, "family: …"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: have %v\nwant %s", model, err, part)
			}
		}
	}
}

// TestFamilyOfUnknown checks that an unknown architecture may have the tensors that
// transformers does not read in a known one.
func TestFamilyOfUnknown(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "model.yaml")
	if err := os.WriteFile(file, []byte("iflow: 1\nname: novel\nfamily: llama\nmodel_dir: "+asUnknown(t, "qwen2")+"\nconfig_file: config.json\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, _ := resolved(t, file, Options{})
	if mod, err := Lower(m); err != nil || !strings.Contains(mod.String(), "q_proj.bias") {
		t.Errorf("no biases: %v", err)
	}
}
