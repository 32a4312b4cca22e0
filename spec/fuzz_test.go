package spec

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

// FuzzSpec parses arbitrary text as a model spec. Accepted specs are resolved
// against a model's headers and lowered. Errors are allowed, panics are not.
func FuzzSpec(f *testing.F) {
	f.Add(small)
	f.Add(small + "quant: q4\ndevices: \"0&1;cpu\"\n")
	f.Add("# lines\n{\"network_structure\": {\"type\": \"transformer.llama\", \"rope_theta\": 1e4}}")
	f.Add(strings.Replace(small, "type: llama", "rope_theta: $rope_theta | 3", 1) + "family: gemma2\n")
	f.Add(small + "  rope_scaling: {rope_type: yarn, factor: 8, original_max_position_embeddings: 64}\n  rope_pattern: [none, rope]\n  sliding_window: 3\n")
	f.Add(graphSpec)
	f.Add(small + "  expert_count: 4\n  moe_top_k: 2\n  moe_groups: 2\n  moe_top_groups: 1\n  latent_attention: true\n  v_head_dim: 3\n")
	f.Add(strings.Replace(small, "type: llama", "type: encoder_decoder", 1) + "family: t5\n")
	f.Add("a: &a [*a]\n<<: *a\n")
	f.Add("family: falcon\nhyper: &x {alibi: true, hidden_size: 64, num_attention_heads: 4, num_hidden_layers: 2}\n")
	f.Fuzz(func(t *testing.T, src string) {
		_ = hostiletest.Read(t, len(src), func() error { return derive(t, "f.yaml", src, map[string]any{"rms_norm_eps": 1e-6}) })
	})
}

// derive parses a model spec, prints it, resolves it against a few tensors and lowers it.
func derive(t *testing.T, file, src string, config map[string]any) error {
	s, err := Parse(file, []byte(src), config, Options{})
	if err != nil {
		return err
	}
	if _, err := s.YAML(); err != nil {
		t.Fatalf("accepted, but cannot be printed: %v", err)
	}
	m, err := Resolve(s, parseHeaders(t, smallHeaders))
	if err == nil {
		_, err = Lower(m)
	}
	if err == nil {
		return nil
	}
	if strings.Contains(err.Error(), "bug:") {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(err.Error(), "\n") // a graph has an error for each line
	return errors.New(first)
}

// FuzzModelSpec parses arbitrary text as an Inferflow model_spec.json with an
// arbitrary config.json. Accepted specs are printed, resolved against a few tensors
// and lowered. An empty model_spec.json means a folder without one.
func FuzzModelSpec(f *testing.F) {
	const config = `{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, "rms_norm_eps": 1e-6}`
	files, err := filepath.Glob("testdata/inferflow/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src), config)
	}
	for _, arch := range Architectures() {
		f.Add("", strings.Replace(config, "llama", arch, 1))
	}
	f.Add("", strings.Replace(config, `1e-6`, `1e-6, "rope_scaling": {"type": "longrope", "short_factor": [1, 2], "long_factor": [3, 4]}, "head_dim": 4`, 1))
	f.Fuzz(func(t *testing.T, src, config string) {
		var c map[string]any
		if json.Unmarshal([]byte(config), &c) != nil {
			return
		}
		if src == "" {
			src = "iflow: 1\nconfig_file: config.json\n"
		}
		_ = hostiletest.Read(t, len(src)+len(config), func() error { return derive(t, "model_spec.json", src, c) })
	})
}

func FuzzDevices(f *testing.F) {
	for _, s := range []string{"0", "0;1", "0&1;2&3", "cpu;0*2", "0|1,2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseDevices(s)
		if err != nil {
			return
		}
		if q, err := ParseDevices(p.String()); err != nil || q.String() != p.String() {
			t.Fatalf("%q prints as %q, which reads as %v, %v", s, p, q, err)
		}
	})
}

func FuzzPattern(f *testing.F) {
	f.Add("layers.{i}.w", "layers.3.w")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p, err := ParsePattern(pattern)
		if err != nil {
			return
		}
		if i, j, ok := p.Match(name); ok && p.Name(i, j) != name {
			t.Fatalf("%q matches %q, but names %q", pattern, name, p.Name(i, j))
		}
	})
}
