package spec

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// reworded copies a tiny model with another config.json and optionally other
// tensor names, and returns its lowered module.
func reworded(t *testing.T, model string, change func(c map[string]any), rename func(name string) string) string {
	t.Helper()
	dir := filepath.Join("testdata/families", model)
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	change(c)
	if raw, err = json.Marshal(c); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "config.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	original, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := original.OpenWeights()
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	s, err := Load(out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Name = "same"
	m, err := Resolve(s, renamedHeaders{HeadersOf(set), rename})
	if err != nil {
		t.Fatal(err)
	}
	mod, err := Lower(m)
	if err != nil {
		t.Fatal(err)
	}
	return mod.String()
}

type renamedHeaders struct {
	Headers
	rename func(string) string
}

func (h renamedHeaders) Names() []string {
	var out []string
	for _, n := range h.Headers.Names() {
		out = append(out, h.rename(n))
	}
	return out
}

func (h renamedHeaders) Lookup(name string) (tensor.DType, []int, bool) {
	for _, n := range h.Headers.Names() {
		if h.rename(n) == name {
			return h.Headers.Lookup(n)
		}
	}
	return tensor.Invalid, nil, false
}

func same(name string) string { return name }

// TestConfigWordings lowers the same model with the keys of other versions of
// transformers, and as the text part of a multimodal model.
func TestConfigWordings(t *testing.T) {
	t.Parallel()
	asIs := func(map[string]any) {}
	t.Run("rope_parameters", func(t *testing.T) {
		t.Parallel()
		got := reworded(t, "llama_llama3", func(c map[string]any) {
			p := maps.Clone(c["rope_scaling"].(map[string]any))
			p["rope_theta"] = c["rope_theta"]
			c["rope_parameters"] = p
			delete(c, "rope_scaling")
			delete(c, "rope_theta")
		}, same)
		if d := cmp.Diff(reworded(t, "llama_llama3", asIs, same), got); d != "" {
			t.Error(d)
		}
	})
	t.Run("rope_parameters of each kind of layer", func(t *testing.T) {
		t.Parallel()
		got := reworded(t, "gemma3", func(c map[string]any) {
			full := maps.Clone(c["rope_scaling"].(map[string]any))
			full["rope_theta"] = c["rope_theta"]
			c["rope_parameters"] = map[string]any{"full_attention": full, "sliding_attention": map[string]any{"rope_type": "default", "rope_theta": c["rope_local_base_freq"]}}
			delete(c, "rope_scaling")
			delete(c, "rope_theta")
			delete(c, "rope_local_base_freq")
		}, same)
		if d := cmp.Diff(reworded(t, "gemma3", asIs, same), got); d != "" {
			t.Error(d)
		}
	})
	t.Run("nulls", func(t *testing.T) {
		t.Parallel()
		got := reworded(t, "llama", func(c map[string]any) {
			for _, k := range []string{"rope_scaling", "head_dim_override", "sliding_window", "quantization_config", "partial_rotary_factor", "torch_dtype", "rope_parameters", "text_config"} {
				c[k] = nil
			}
		}, same)
		if d := cmp.Diff(reworded(t, "llama", asIs, same), got); d != "" {
			t.Error(d)
		}
	})
	t.Run("text_config", func(t *testing.T) {
		t.Parallel()
		nested := func(name string) string { return "language_model." + name }
		got := reworded(t, "gemma3", func(c map[string]any) {
			text := maps.Clone(c)
			clear(c)
			c["model_type"], c["text_config"], c["vision_config"] = "gemma3", text, map[string]any{"hidden_size": 5}
		}, nested)
		want := reworded(t, "gemma3", asIs, same)
		if d := cmp.Diff(want, strings.ReplaceAll(got, `"language_model.`, `"`)); d != "" {
			t.Error(d)
		}
	})
}

// TestTextConfigs lowers the text of a multimodal model with its keys in other places.
func TestTextConfigs(t *testing.T) {
	t.Parallel()
	want := reworded(t, "qwen2_5_vl", func(map[string]any) {}, same)
	for name, change := range map[string]func(c map[string]any){
		"text_config's own tie": func(c map[string]any) {
			text := maps.Clone(c)
			text["tie_word_embeddings"] = true
			c["text_config"] = text
			delete(c, "hidden_size")
		},
		"copies of text_config": func(c map[string]any) { c["text_config"] = maps.Clone(c) },
		"thinker_config": func(c map[string]any) {
			thinker := maps.Clone(c)
			clear(c)
			c["thinker_config"] = thinker
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(want, reworded(t, "qwen2_5_vl", change, same)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestOutsideArchitectures(t *testing.T) {
	t.Parallel()
	for arch, want := range map[string][]string{
		"xlstm":  {"mLSTM and sLSTM layers", "nor do the ops of a graph: block", "full, sliding-window or latent"},
		"nosuch": {`unknown architecture "nosuch"`, "network_structure", "graph: block"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type": "`+arch+`", "hidden_size": 8}`), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(dir, Options{})
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v; want %q in it", arch, err, w)
			}
		}
	}
	known := Architectures()
	for _, o := range unsupportedArchitectures() {
		for _, a := range o.Architectures {
			for _, k := range known {
				if a == k {
					t.Errorf("outside.yaml has %s, for which there is a family", a)
				}
			}
		}
	}
}

// TestKeywordNames checks that a model may be named like a word of the IR.
func TestKeywordNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"inf", "weight", "graph", "state", "repeat", "yield", "input", "from", "module", "fuse", "par"} {
		s, err := Parse("spec.yaml", []byte(strings.Replace(graphSpec, "name: g", "name: "+name, 1)), nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Resolve(s, parseHeaders(t, "embed f16 6 4\nl.{0..2}.w f16 4 4\n"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		mod, err := Lower(m)
		if err != nil || mod.Name != name {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if again, err := ir.Parse("m.ir", []byte(mod.String()), ops.Table); err != nil || again.Name != name {
			t.Errorf("%s: its text: %v", name, err)
		}
	}
}
