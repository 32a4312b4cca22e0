package spec

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
	"gopkg.in/yaml.v3"
)

// A variant is another model spec of a tiny model. Its expected results follow
// from those of transformers for the original model.
type variant struct {
	values []string // module values that it tests
	model  string
	top    map[string]any // keys to set
	net    map[string]any // keys of network_structure to set; nil removes a key
	want   func(t *testing.T, r *runner, want *expected)
	source func(stored interp.Source) interp.Source // rearranges the stored tensors
}

var presetKeys = map[string]any{"normalization_function": nil, "activation_function": nil, "position_embedding": nil}

// with returns a copy of a map with a key added.
func with(m map[string]any, key string, v any) map[string]any {
	out := map[string]any{key: v}
	for k, x := range m {
		out[k] = x
	}
	return out
}

var variants = []variant{
	{values: []string{"type=llama"}, model: "llama", net: with(presetKeys, "type", "llama")},
	{values: []string{"type=bloom"}, model: "bloom", top: map[string]any{"family": nil}, net: with(with(presetKeys, "type", "bloom"), "tied_embeddings", true)},
	{values: []string{"type=bert"}, model: "bert", net: map[string]any{"type": "bert"}},
	{values: []string{"type=general"}, model: "llama", net: map[string]any{"type": "general"}},
	{values: []string{"type=transformer"}, model: "llama", net: map[string]any{"type": "transformer"}},
	{values: []string{"rope_scaling.rope_type=default"}, model: "llama", net: map[string]any{"rope_scaling": map[string]any{"rope_type": "default"}}},
	{values: []string{"rope_scaling.rope_type=none"}, model: "llama", net: map[string]any{"rope_scaling": map[string]any{"rope_type": "none"}}},
	{values: []string{"activation_function=glu_silu"}, model: "phi3", net: map[string]any{"activation_function": "glu_silu",
		"tensor_name_mapping": map[string]any{"model.layers.{i}.mlp.gate_up_proj.weight": "dec.{i}.feed_forward.w1.weight"}}},
	{values: []string{"qk_norm=none"}, model: "llama", net: map[string]any{"qk_norm": "none"}},
	{values: []string{"experts: layer end"}, model: "mixtral", net: map[string]any{"moe_layer_end": 2}},
	// A factor in front of a norm only changes the norm's epsilon.
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
			r.mod.Weight("head").Type.Elem = tensor.F32 // rows of unit length are not exact in the stored type
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
	{values: []string{"mixer_pattern=sliding"}, model: "gemma3", net: map[string]any{"attention_pattern": nil, "mixer_pattern": []string{"sliding", "full", "sliding"}}},
	{values: []string{"linear_attention.value_order=tiled"}, model: "qwen3_5", net: linearKey("qwen3_5", "value_order", "tiled"), source: tiledHeads},
	{values: []string{"kv_pattern=stored"}, model: "gemma4_moe", net: map[string]any{"kv_pattern": []string{"stored"}}},
	{values: []string{"ffn_pattern=stored"}, model: "jamba", net: map[string]any{"ffn_pattern": []string{"stored"}}},
	{values: []string{"stored_decay=rate"}, model: "bamba", net: map[string]any{"stored_decay": "rate"}, source: decayRates},
	// Inferflow's name of Mixtral's norm in front of the experts.
	{values: []string{"residual: post-norm as FFN input"}, model: "mixtral", net: map[string]any{"is_attn_post_as_residual": false,
		"tensor_name_mapping": map[string]any{"model.layers.{i}.post_attention_layernorm.weight": "dec.{i}.self_attn.post_norm.weight"}}},
	{values: []string{"qkv_format=1 GQA"}, model: "falcon_40b", net: map[string]any{"qkv_format": 1}, source: allQueriesFirst},
	{values: []string{"normalization_function=linear"}, model: "llama", top: map[string]any{"ignore_tensors": []string{"*norm.weight"}},
		net: map[string]any{"normalization_function": "linear"}, want: byReference(func(r *reference) { r.factor = true })},
	{values: []string{"experts: fewer than stored"}, model: "mixtral", net: map[string]any{"using_expert_count": 3},
		want: byReference(func(r *reference) { r.experts = 3 })},
}

// allVariants returns the variants of the table and one variant per activation
// function and place where it may occur.
func allVariants() []variant {
	all := slices.Clone(variants)
	gated := map[string]any{"model.layers.{i}.mlp.gate_up_proj.weight": "dec.{i}.feed_forward.w1.weight"}
	for _, word := range []string{"sigmoid", "elu", "quick_gelu", "tanh", "identity", "relu", "relu2", "gelu", "gelu_erf"} {
		want := byReference(func(r *reference) { r.act = formulas[word] })
		all = append(all,
			variant{values: []string{"activation_function=" + word}, model: "llama", net: map[string]any{"activation_function": word}, want: want})
		if packed := "glu_" + word; word != "tanh" && word != "identity" {
			all = append(all, variant{values: []string{"activation_function=" + packed}, model: "phi3",
				net: map[string]any{"activation_function": packed, "tensor_name_mapping": gated}, want: want})
		}
	}
	for _, word := range []string{"gelu", "gelu_erf", "silu", "relu"} {
		all = append(all, variant{values: []string{"pooler_activation=" + word}, model: "bert", net: map[string]any{"pooler_activation": word}, want: pooledWith(formulas[word])})
	}
	for _, word := range []string{"tanh", "relu", "gelu", "silu"} {
		all = append(all, variant{values: []string{"head_activation=" + word}, model: "bert_mlm", net: map[string]any{"head_activation": word}, want: headWith(formulas[word])})
	}
	return all
}

// byReference replaces the expected logits by those of the float64 reference.
func byReference(set func(r *reference)) func(t *testing.T, r *runner, want *expected) {
	return func(t *testing.T, r *runner, want *expected) {
		ref := newReference(t, r.dir)
		set(ref)
		want.Logits, want.Greedy = ref.logits(want.IDs, len(want.Logits)), nil
	}
}

// pooledWith inverts the tanh that transformers applied and applies another
// function.
func pooledWith(act func(float64) float64) func(t *testing.T, r *runner, want *expected) {
	return func(t *testing.T, r *runner, want *expected) {
		for _, row := range want.Pooled {
			for i, y := range row {
				row[i] = act(math.Atanh(y))
			}
		}
	}
}

// headWith computes BERT's masked-LM head from the hidden states (Devlin et
// al. 2018): decoder·norm(act(dense·h)).
func headWith(act func(float64) float64) func(t *testing.T, r *runner, want *expected) {
	return func(t *testing.T, r *runner, want *expected) {
		ref := newReference(t, r.dir)
		hidden := r.run("encode", &interp.Step{IDs: want.IDs, Types: want.Types, OutRows: want.Wanted})["hidden"]
		width := len(hidden) / len(want.IDs)
		for i, at := range want.Wanted {
			y := times(ref.tensors("cls.predictions.transform.dense.weight"), hidden[at*width:][:width])
			addTo([][]float64{y}, [][]float64{ref.tensors("cls.predictions.transform.dense.bias")})
			mean, square := 0.0, 0.0
			for j := range y {
				y[j] = act(y[j])
				mean += y[j] / float64(width)
			}
			for _, v := range y {
				square += (v - mean) * (v - mean) / float64(width)
			}
			for j := range y {
				y[j] = (y[j]-mean)/math.Sqrt(square+1e-12)*ref.tensors("cls.predictions.transform.LayerNorm.weight")[j] + ref.tensors("cls.predictions.transform.LayerNorm.bias")[j]
			}
			want.Logits[i] = times(ref.tensors("bert.embeddings.word_embeddings.weight"), y)
			addTo([][]float64{want.Logits[i]}, [][]float64{ref.tensors("cls.predictions.bias")})
		}
	}
}

// allQueriesFirst reorders the rows of Falcon 40B's fused matrix from grouped by
// KV head to all queries, all keys, all values.
func allQueriesFirst(source interp.Source) interp.Source {
	const heads, kv, dim = 4, 2, 4
	return func(name string) (*tensor.Tensor, error) {
		x, err := source(name)
		if err != nil || !strings.HasSuffix(name, "query_key_value.weight") {
			return x, err
		}
		head := dim * x.Shape[1]
		out := tensor.New(x.DType, x.Shape...)
		group := heads/kv + 2
		for i := range heads + 2*kv {
			g, part := i/group, i%group
			to := g*heads/kv + part
			if part == heads/kv {
				to = heads + g
			} else if part > heads/kv {
				to = heads + kv + g
			}
			copy(out.F[to*head:], x.F[i*head:][:head])
		}
		return out, nil
	}
}

// decayRates replaces A_log by −exp(A_log), which GGUF files store.
func decayRates(source interp.Source) interp.Source {
	return func(name string) (*tensor.Tensor, error) {
		x, err := source(name)
		if err != nil || !strings.HasSuffix(name, ".A_log") {
			return x, err
		}
		out := tensor.New(tensor.F32, x.Shape...)
		for i, v := range x.F {
			out.F[i] = -math.Exp(v)
		}
		return out, nil
	}
}

// linearKey returns the section of a model's linear attention with a key added.
func linearKey(model, key string, v any) map[string]any {
	section := map[string]any{"heads": 4, "key_heads": 2, "key_dim": 6, "value_dim": 5, "activation": "silu", "qk_norm": "l2", "qk_norm_eps": 1e-6, "decay": "head", "delta_rule": true}
	if model == "qwen3_next" {
		section["layout"] = "heads"
	}
	return map[string]any{"linear_attention": with(section, key, v)}
}

// reordered returns the rows of x from row lo on in runs of the given size, in another
// order: run i of the result is run order[i].
func reordered(x *tensor.Tensor, lo, run int, order []int) *tensor.Tensor {
	width := len(x.F) / x.Shape[0]
	out := x.Clone()
	for i, from := range order {
		copy(out.F[(lo+i*run)*width:], x.F[(lo+from*run)*width:][:run*width])
	}
	return out
}

// tiledHeads interchanges the value heads 1 and 2 of four, as GGUF files do.
func tiledHeads(source interp.Source) interp.Source {
	const keys, dim = 2 * 2 * 6, 5
	order := []int{0, 2, 1, 3}
	return func(name string) (*tensor.Tensor, error) {
		x, err := source(name)
		if err != nil {
			return x, err
		}
		_, part, _ := strings.Cut(name, "linear_attn.")
		switch part {
		case "in_proj_qkv.weight", "conv1d.weight":
			return reordered(x, keys, dim, order), nil
		case "in_proj_z.weight":
			return reordered(x, 0, dim, order), nil
		case "in_proj_a.weight", "in_proj_b.weight", "A_log", "dt_bias":
			return reordered(x, 0, 1, order), nil
		case "out_proj.weight":
			columns := x.Clone()
			columns.Shape = []int{len(x.F) / dim, dim} // rows of one head each
			for r := range x.Shape[0] {
				columns = reordered(columns, 4*r, 1, order)
			}
			columns.Shape = x.Shape
			return columns, nil
		}
		return x, nil
	}
}

// TestVariants runs the variants and compares as TestFamilies does.
func TestVariants(t *testing.T) {
	t.Parallel()
	for _, v := range allVariants() {
		t.Run(v.values[0], func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.Abs(filepath.Join("testdata/families", v.model))
			if err != nil {
				t.Fatal(err)
			}
			want := readExpected(t, dir)
			r := newRunner(t, v.write(t, dir))
			if r.dir = dir; v.source != nil {
				r.values = interp.NewWeights(r.mod, v.source(r.stored))
			}
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

// file returns the path of the variant's model spec in testdata/variants, which the
// tests of compiled models read too.
func (v *variant) file() string {
	return filepath.Join("testdata/variants", strings.ReplaceAll(v.values[0], " ", "_")+".yaml")
}

// write writes the model's model spec with the variant's keys.
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
	doc["model_dir"] = "../families/" + v.model
	set(doc, v.top)
	set(doc["network_structure"].(map[string]any), v.net)
	if text, err = yaml.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	if v.source != nil {
		return temporary(t, strings.Replace(string(text), "../families/"+v.model, dir, 1))
	}
	if *update {
		if err := os.WriteFile(v.file(), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(v.file())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(have), string(text)); d != "" {
		t.Errorf("%s (-have +want); -update rewrites it:\n%s", v.file(), d)
	}
	return v.file()
}

func temporary(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "variant.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
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

// inVariants reports whether some variant tests a module value.
func inVariants(value string) bool {
	return slices.ContainsFunc(allVariants(), func(v variant) bool { return slices.Contains(v.values, value) })
}
