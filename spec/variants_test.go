package spec

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"gopkg.in/yaml.v3"
)

// A variant is another way to write the specification of a tiny model, whose
// numbers follow from those of transformers for the model as it is.
type variant struct {
	values []string // module values that it tests
	model  string
	top    map[string]any // keys to set
	net    map[string]any // keys of network_structure to set; nil values are taken out
	want   func(t *testing.T, r *runner, want *expected)
}

var presetKeys = map[string]any{"normalization_function": nil, "activation_function": nil, "position_embedding": nil}

// with adds a key to a copy of a map.
func with(m map[string]any, key string, v any) map[string]any {
	out := map[string]any{key: v}
	for k, x := range m {
		out[k] = x
	}
	return out
}

var variants = []variant{
	{values: []string{"type=llama"}, model: "llama", net: with(presetKeys, "type", "llama")},
	{values: []string{"type=bloom"}, model: "bloom", net: with(presetKeys, "type", "bloom")},
	{values: []string{"type=bert"}, model: "bert", net: map[string]any{"type": "bert"}},
	{values: []string{"type=general"}, model: "llama", net: map[string]any{"type": "general"}},
	{values: []string{"type=transformer"}, model: "llama", net: map[string]any{"type": "transformer"}},
	{values: []string{"rope_scaling.rope_type=default"}, model: "llama", net: map[string]any{"rope_scaling": map[string]any{"rope_type": "default"}}},
	{values: []string{"rope_scaling.rope_type=none"}, model: "llama", net: map[string]any{"rope_scaling": map[string]any{"rope_type": "none"}}},
	{values: []string{"activation_function=glu_silu"}, model: "phi3", net: map[string]any{"activation_function": "glu_silu",
		"tensor_name_mapping": map[string]any{"model.layers.{i}.mlp.gate_up_proj.weight": "dec.{i}.feed_forward.w1.weight"}}},
	{values: []string{"qk_norm=none"}, model: "llama", net: map[string]any{"qk_norm": "none"}},
	{values: []string{"experts: layer end"}, model: "mixtral", net: map[string]any{"moe_layer_end": 2}},
	// A factor in front of a norm only moves the norm's epsilon.
	{values: []string{"out_scale"}, model: "llama", net: map[string]any{"out_scale": 3}},
	{values: []string{"head: padded vocabulary"}, model: "llama", top: map[string]any{"vocab_size": 39, "padded_vocab_size": 40},
		want: func(t *testing.T, r *runner, want *expected) {
			for i := range want.Logits {
				want.Logits[i] = want.Logits[i][:39]
			}
			want.Greedy = nil
		}},
	{values: []string{"head: rows of unit length"}, model: "llama", net: map[string]any{"normalize_lm_head": true},
		want: func(t *testing.T, r *runner, want *expected) {
			s, err := Load("testdata/families/llama", Options{})
			if err != nil {
				t.Fatal(err)
			}
			set, err := s.OpenWeights()
			if err != nil {
				t.Fatal(err)
			}
			defer set.Close()
			head, err := set.Float32("lm_head.weight")
			if err != nil {
				t.Fatal(err)
			}
			r.mod.Weight("head").Type.Elem = tensor.F32 // unit rows are no longer exact in the stored type
			width := len(head) / len(want.Logits[0])
			for _, row := range want.Logits {
				for j := range row {
					sum := 0.0
					for _, x := range head[j*width : (j+1)*width] {
						sum += float64(x) * float64(x)
					}
					row[j] /= math.Sqrt(sum)
				}
			}
			want.Greedy = nil
		}},
}

// TestVariants runs the variants and compares as TestFamilies does.
func TestVariants(t *testing.T) {
	t.Parallel()
	for _, v := range variants {
		t.Run(v.values[0], func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.Abs(filepath.Join("testdata/families", v.model))
			if err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(filepath.Join(dir, "expected.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want expected
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			r := newRunner(t, v.write(t, dir))
			if v.want != nil {
				v.want(t, r, &want)
			}
			if r.mod.Graph("encode") != nil {
				r.encoder(want)
				return
			}
			r.decoder(want.IDs, want)
		})
	}
}

// write prints the model's specification with the variant's keys.
func (v *variant) write(t *testing.T, dir string) string {
	t.Helper()
	s, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	doc["model_dir"] = dir
	set(doc, v.top)
	set(doc["network_structure"].(map[string]any), v.net)
	if text, err = yaml.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "variant.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func set(doc, keys map[string]any) {
	for k, x := range keys {
		if doc[k] = x; x == nil {
			delete(doc, k)
		}
	}
}

// inVariants says whether some variant tests a module value.
func inVariants(value string) bool {
	return slices.ContainsFunc(variants, func(v variant) bool { return slices.Contains(v.values, value) })
}
