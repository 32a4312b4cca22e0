package spec

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestListExpressions evaluates the functions that make lists for layers.
func TestListExpressions(t *testing.T) {
	t.Parallel()
	config := map[string]any{
		"num_hidden_layers": 4.0, "pattern": "M-*E", "types": []any{"linear_attention", "full_attention"}, "at": []any{1.0, 3.0}, "limits": []any{0.5, nil},
		"kv": []any{0.0, 2.0, 0.0, 2.0}, "ff": []any{8.0, 0.0, 0.0, 0.0},
	}
	list := func(words ...string) any {
		var out []any
		for _, w := range words {
			out = append(out, w)
		}
		return out
	}
	for src, want := range map[string]any{
		"each($pattern, M, ssd, '*', full, '-', none, E, none)":  list("ssd", "none", "full", "none"),
		"each($types, linear_attention, linear)":                 list("linear", "full_attention"),
		"each($kv, 0, each($ff, 0, ssd, none), full)":            list("none", "full", "ssd", "full"),
		"each($missing, a, b)":                                   nil,
		"layers_at($at, full, ssd)":                              list("ssd", "full", "ssd", "full"),
		"layers_at($at, full, ssd, 1)":                           list("full", "ssd", "full", "ssd"),
		"layers_every(2, full, linear)":                          list("linear", "full", "linear", "full"),
		"layers_every(3, full, linear, 0)":                       list("full", "linear", "linear", "full"),
		"layers_below(1, dense, sparse)":                         list("dense", "sparse", "sparse", "sparse"),
		"layers_below(2, layers_every(2, full, linear), sparse)": list("linear", "full", "sparse", "sparse"),
		"len($pattern)":                                          4.0,
		"len($missing) | 3":                                      3.0,
		"$limits.0":                                              0.5,
		"$limits.1":                                              nil,
		"$limits.2 | 7":                                          7.0,
		"bf16(sqrt(2560))":                                       50.5,
	} {
		have, err := evalExpr(src, config)
		if err != nil || !reflect.DeepEqual(have, want) {
			t.Errorf("%s is %v (%v), want %v", src, have, err, want)
		}
	}
	for src, want := range map[string]string{
		"each(3, a, b)":                  "neither a list nor a text",
		"layers_every(0, a, b)":          "want a number of layers",
		"layers_below(x, a, b)":          "< compares numbers",
		"layers_at($at, full)":           "has no argument no",
		"layer_every(2, full, sliding)":  "did you mean layers_every?",
		"len(layers_below(1, a))":        "has no argument no",
		"each(len($pattern), full, ssd)": "neither a list nor a text",
	} {
		if _, err := evalExpr(src, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", src, err, want)
		}
	}
}

// TestMixerErrors checks the errors of the keys for token mixers.
func TestMixerErrors(t *testing.T) {
	t.Parallel()
	const head = "iflow: 1\nnetwork_structure: {type: decoder_only, normalization_function: rms, activation_function: silu, "
	for src, want := range map[string]string{
		"mixer_pattern: [mamba3]}":         "mixer_pattern: have",
		"linear_attention: {delta: true}}": `unknown key "delta" in network_structure.linear_attention`,
		"ssd: {norm: {gate: relu}}}":       "network_structure.ssd.norm.gate: have",
	} {
		if _, err := Parse("m.yaml", []byte(head+src), nil, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", src, err, want)
		}
	}
}

// TestInfiniteNumbers reads the numbers of config.json that JSON does not have.
func TestInfiniteNumbers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.json")
	for src, want := range map[string]any{
		`{"limit": [0.0, Infinity]}`:                  []any{0.0, nil},
		`{"limit": [0.0, {"__float__": "Infinity"}]}`: []any{0.0, nil},
		`{"limit": -Infinity}`:                        nil,
		`{"limit": "to Infinity, NaN"}`:               "to Infinity, NaN",
		`{"limit": [NaN, 1]}`:                         []any{nil, 1.0},
	} {
		if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := readConfig(file)
		if err != nil || !reflect.DeepEqual(c["limit"], want) {
			t.Errorf("%s: %v (%v), want %v", src, c["limit"], err, want)
		}
	}
}

// TestNextTokenLayers ignores the layers for multi-token prediction, which are stored
// behind those of the model.
func TestNextTokenLayers(t *testing.T) {
	t.Parallel()
	s, err := Parse("m.yaml", []byte("iflow: 1\n"), changedConfig(t, "llama", map[string]any{"num_nextn_predict_layers": 1.0}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{Spec: s, Net: &s.Network, Hyper: Hyper{Layers: 2}}
	for name, want := range map[string]bool{
		"model.layers.1.mlp.up_proj.weight": false, "model.layers.2.eh_proj.weight": true, "blk.2.nextn.enorm.weight": true, "model.layers.3.enorm.weight": false, "lm_head.weight": false,
	} {
		if have := m.predictsNext(name); have != want {
			t.Errorf("%s: %t, want %t", name, have, want)
		}
	}
	c := ggufConfig(map[string]any{"general.architecture": "qwen35", "qwen35.block_count": uint32(25), "qwen35.nextn_predict_layers": uint32(1)})
	if c["num_hidden_layers"] != 24.0 {
		t.Errorf("%v layers, want 24", c["num_hidden_layers"])
	}
}

// TestGGUFYarn reads mscale, of which files of deepseek2 have a tenth.
func TestGGUFYarn(t *testing.T) {
	t.Parallel()
	c := ggufConfig(map[string]any{"general.architecture": "deepseek2", "deepseek2.rope.scaling.type": "yarn", "deepseek2.rope.scaling.yarn_log_multiplier": float32(0.1)})
	rs, _ := c["rope_scaling"].(map[string]any)
	if rs["mscale"] != 1.0 || rs["mscale_all_dim"] != 1.0 {
		t.Errorf("rope_scaling %v, want mscale and mscale_all_dim 1", rs)
	}
}

// TestGGUFLayerLists reads numbers of heads that GGUF stores for each layer.
func TestGGUFLayerLists(t *testing.T) {
	t.Parallel()
	c := ggufConfig(map[string]any{
		"general.architecture": "jamba", "jamba.attention.head_count_kv": []int32{0, 2, 0, 2}, "jamba.feed_forward_length": uint32(0), "jamba.attention.head_count": []uint32{4, 8},
	})
	if c["num_key_value_heads"] != 2.0 || !reflect.DeepEqual(c["num_key_value_heads_by_layer"], []any{0.0, 2.0, 0.0, 2.0}) {
		t.Errorf("KV heads: %v, by layer %v", c["num_key_value_heads"], c["num_key_value_heads_by_layer"])
	}
	if _, set := c["intermediate_size"]; set || !reflect.DeepEqual(c["num_attention_heads"], []any{4.0, 8.0}) {
		t.Errorf("no FFN: %v; heads that differ: %v", c["intermediate_size"], c["num_attention_heads"])
	}
}
