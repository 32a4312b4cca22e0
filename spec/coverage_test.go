package spec

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A moduleValue is one atomic choice; in reports whether a model's results depend
// on it.
type moduleValue struct {
	name string
	in   func(m *Model) bool
}

// TestCoverage checks that every value of every module occurs in a model that
// TestFamilies compares with transformers, in one of TestCombinations, or in a variant of
// TestVariants.
func TestCoverage(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/families/*/expected.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no models: %v", err)
	}
	combined, err := filepath.Glob("testdata/combinations/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = filepath.Dir(files[i])
	}
	var models []*Model
	for _, file := range append(files, combined...) {
		s, err := Load(file, Options{Quant: "f32"})
		if err != nil {
			t.Fatal(err)
		}
		set, err := s.OpenWeights()
		if err != nil {
			t.Fatal(err)
		}
		m, err := Resolve(s, HeadersOf(set))
		set.Close()
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, m)
	}
	for _, v := range append(wordValues(t), otherValues...) {
		if sharedActivation.MatchString(v.name) {
			continue
		}
		if !inVariants(v.name) && !slices.ContainsFunc(models, v.in) {
			t.Errorf("%s: no model of testdata/families has it; add one to make.py", v.name)
		}
	}
}

// sharedActivation matches activations of mixers and dense layers, which use the ops of activation_function.
var sharedActivation = regexp.MustCompile(`^([a-z0-9_]+\.activation|embedding_dense|head_activation|pooler_activation)=[a-z]`)

// wordValues returns the words of the keys of network_structure.
func wordValues(t *testing.T) []moduleValue {
	var out []moduleValue
	for _, key := range library().Keys() {
		p, err := library().Key(key)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(key, "rope_local_scaling.") {
			continue // the same modules as rope_scaling
		}
		for _, word := range p.Words {
			out = append(out, moduleValue{key + "=" + word, func(m *Model) bool {
				if need := activeKeys[key]; need != nil && !need(m) {
					return false
				}
				switch list := m.Net.Param(key).(type) {
				case []string:
					return slices.Contains(list, word)
				case []any:
					return slices.Contains(list, any(word))
				case string:
					if key == "qk_norm_function" && list == "" {
						return m.Net.word("normalization_function") == word
					}
					return list == word || key == "rope_scaling.rope_type" && list == "" && canonicalWord(m.Net.word("rope_scaling.type")) == word
				}
				return false
			}})
		}
	}
	return out
}

func float(m *Model, key string) float64 {
	f, _ := number(m.Net.Param(key))
	return f
}

// activeKeys maps keys to conditions under which their values affect the results.
var activeKeys = map[string]func(m *Model) bool{
	"qk_norm":            func(m *Model) bool { return withQKNorm(m) || m.Net.word("qk_norm") == "rope_layers" },
	"qk_norm_function":   withQKNorm,
	"qk_norm_position":   withQKNorm,
	"rope_pattern":       func(m *Model) bool { return m.Net.word("position_embedding") == "rope" },
	"attention_pattern":  func(m *Model) bool { return m.Net.number("sliding_window") > 0 },
	"moe_score":          withExperts,
	"moe_group_score":    func(m *Model) bool { return withExperts(m) && m.Net.number("moe_groups") > 1 },
	"moe_weight_layout":  withStackedExperts,
	"pooler_activation":  func(m *Model) bool { return m.has("pooler.weight") },
	"head_activation":    func(m *Model) bool { return m.has("output_transform.weight") && m.Net.encodes() },
	"classifier_pooling": func(m *Model) bool { return m.has("classifier.weight") },
}

func withQKNorm(m *Model) bool         { return hasLike(m, "self_attn.q_norm") }
func withExperts(m *Model) bool        { return m.Net.number("expert_count") > 0 && hasLike(m, ".moe.") }
func withStackedExperts(m *Model) bool { return withExperts(m) && hasLike(m, ".moe.experts.w2") }

// hasLike reports whether the standard name of some tensor contains part.
func hasLike(m *Model, part string) bool {
	return slices.ContainsFunc(m.Tensors(), func(std string) bool { return strings.Contains(std, part) })
}

func fused(format int, heads func(heads, kv int) bool) func(m *Model) bool {
	return func(m *Model) bool {
		return hasLike(m, "self_attn.qkv.weight") && m.Net.number("qkv_format") == format && heads(m.size("heads"), m.size("kv_heads"))
	}
}

func ropes(test func(m *Model) bool) func(m *Model) bool {
	return func(m *Model) bool { return m.Net.word("position_embedding") == "rope" && test(m) }
}

// rotatesPart reports whether rope rotates only some channels of each head.
func rotatesPart(m *Model) bool {
	n, latent := m.Net.number("rope_dim"), m.Net.is("latent_attention")
	return latent || n > 0 && n < m.size("head_dim") || float(m, "partial_rotary_factor") < 1
}

func mha(heads, kv int) bool { return kv == heads && heads > 1 }
func gqa(heads, kv int) bool { return kv > 1 && kv < heads }
func mqa(heads, kv int) bool { return kv == 1 && heads > 1 }

// otherValues are the choices that are not words: numbers, flags and choices that
// follow from the tensors.
var otherValues = []moduleValue{
	{"learned positions", func(m *Model) bool { return hasLike(m, "pos_embeddings") }},
	{"pos_embedding_offset", func(m *Model) bool { return m.Net.number("pos_embedding_offset") > 0 }},
	{"qk_column_order=0 or 1", ropes(func(m *Model) bool { return m.Net.number("qk_column_order") != 2 })},
	{"qk_column_order=2", ropes(func(m *Model) bool { return m.Net.number("qk_column_order") == 2 })},
	{"adjacent, partial rotation", ropes(func(m *Model) bool { return m.Net.number("qk_column_order") != 2 && rotatesPart(m) })},
	{"halves, partial rotation", ropes(func(m *Model) bool { return m.Net.number("qk_column_order") == 2 && rotatesPart(m) })},
	{"rope_local_theta", ropes(func(m *Model) bool { return float(m, "rope_local_theta") > 0 })},
	{"qkv_format=0 MHA", fused(0, mha)},
	{"qkv_format=0 GQA", fused(0, gqa)},
	{"qkv_format=0 MQA", fused(0, mqa)},
	{"qkv_format=1 MHA", fused(1, mha)},
	{"qkv_format=1 GQA", fused(1, gqa)},
	{"qkv_format=1 MQA", fused(1, mqa)},
	{"residual: pre-norm, sequential", func(m *Model) bool {
		return !parallel(m) && hasLike(m, "self_attn.pre_norm") && hasLike(m, "feed_forward.pre_norm")
	}},
	{"residual: post-norm", func(m *Model) bool { return hasLike(m, "self_attn.post_norm") && m.Net.is("is_attn_post_as_residual") }},
	{"residual: post-norm as FFN input", func(m *Model) bool { return hasLike(m, "self_attn.post_norm") && !m.Net.is("is_attn_post_as_residual") }},
	{"residual: parallel, shared norm", func(m *Model) bool { return m.Net.is("is_parallel_attn") && !m.Net.is("mlp_attn_share_input") }},
	{"residual: parallel, own norm", func(m *Model) bool { return m.Net.is("mlp_attn_share_input") }},
	{"norms on sub-layer outputs", func(m *Model) bool { return hasLike(m, "self_attn.out_norm") }},
	{"norms without parameters", func(m *Model) bool { return !m.Net.is("norm_parameters") }},
	{"FFN: plain", func(m *Model) bool { return !hasLike(m, ".w3.") && !hasLike(m, ".w1n3.") && !withExperts(m) }},
	{"FFN: gated", func(m *Model) bool { return hasLike(m, "feed_forward.w3.weight") }},
	{"FFN: packed gate", func(m *Model) bool { return hasLike(m, "feed_forward.w1n3.weight") }},
	{"experts: renormalized", func(m *Model) bool { return withExperts(m) && m.Net.is("moe_norm_top_k_prob") }},
	{"experts: not renormalized", func(m *Model) bool { return withExperts(m) && !m.Net.is("moe_norm_top_k_prob") }},
	{"experts: shared", func(m *Model) bool { return hasLike(m, "moe.shared_expert.w1") }},
	{"experts: none shared", func(m *Model) bool { return withExperts(m) && !hasLike(m, "moe.shared_expert.w1") }},
	{"experts: some layers dense", func(m *Model) bool { return withExperts(m) && !m.has("dec.{i}.moe.gate.weight") }},
	{"experts: layer end", func(m *Model) bool { return withExperts(m) && m.Net.number("moe_layer_end") >= 0 }},
	{"experts: layer step", func(m *Model) bool { return withExperts(m) && m.Net.number("moe_layer_step") > 1 }},
	{"experts: fewer than stored", func(m *Model) bool {
		return withExperts(m) && m.Net.number("using_expert_count") > 0 && m.Net.number("using_expert_count") < m.Net.number("expert_count")
	}},
	{"experts: groups", func(m *Model) bool { return withExperts(m) && m.Net.number("moe_groups") > 1 }},
	{"experts: scaled", func(m *Model) bool { return withExperts(m) && float(m, "moe_scale") != 1 }},
	{"latent attention", func(m *Model) bool { return m.Net.is("latent_attention") }},
	{"attention sinks", func(m *Model) bool { return hasLike(m, "self_attn.sinks.weight") }},
	{"attention: window", func(m *Model) bool { return m.Net.number("sliding_window") > 0 }},
	{"groups of layers", func(m *Model) bool { return hasLike(m, "enc.1.0.self_attn.") }},
	{"groups of several layers", func(m *Model) bool { return hasLike(m, "enc.0.1.self_attn.") }},
	{"attn_softcap", func(m *Model) bool { return float(m, "attn_softcap") > 0 }},
	{"attn_scale", func(m *Model) bool { return float(m, "attn_scale") != 0 }},
	{"qkv_clamp", func(m *Model) bool { return float(m, "qkv_clamp") > 0 }},
	{"embeddings times √width", func(m *Model) bool {
		return m.Net.is("has_embedding_linear_norm") && float(m, "embedding_linear_scale") <= 1e-4
	}},
	{"embeddings times a constant", func(m *Model) bool {
		return m.Net.is("has_embedding_linear_norm") && float(m, "embedding_linear_scale") > 1e-4
	}},
	{"attn_out_scale", func(m *Model) bool { return float(m, "attn_out_scale") != 1 }},
	{"ffn_out_scale", func(m *Model) bool { return float(m, "ffn_out_scale") != 1 }},
	{"out_scale", func(m *Model) bool { return float(m, "out_scale") != 1 }},
	{"attn_pre_norm_base", func(m *Model) bool { return float(m, "attn_pre_norm_base") != 0 }},
	{"ffn_pre_norm_base", func(m *Model) bool { return float(m, "ffn_pre_norm_base") != 0 }},
	{"output_norm_base", func(m *Model) bool { return float(m, "output_norm_base") != 0 }},
	{"logit_scale", func(m *Model) bool { return float(m, "logit_scale") != 1 }},
	{"logit_softcap", func(m *Model) bool { return float(m, "logit_softcap") > 0 }},
	{"head: separate", func(m *Model) bool { return m.has("output.weight") && !m.Net.is("tied_embeddings") }},
	{"head: tied", func(m *Model) bool {
		return m.Net.decodes() && (!m.has("output.weight") || m.Net.is("tied_embeddings"))
	}},
	{"head: rows of unit length", func(m *Model) bool { return m.Net.is("normalize_lm_head") }},
	{"head: biased", func(m *Model) bool { return m.Net.decodes() && m.has("output.bias") }},
	{"head: masked LM", func(m *Model) bool { return !m.Net.decodes() && m.has("output.bias") }},
	{"head: padded vocabulary", func(m *Model) bool { return m.Hyper.Rows > m.Hyper.Vocab }},
	{"embeddings narrower than the layers", func(m *Model) bool { return m.has("input_transform.weight") }},
	{"weight_layout=in_out, biased", func(m *Model) bool { return m.Net.word("weight_layout") == "in_out" && hasLike(m, "wo.bias") }},
}

func parallel(m *Model) bool { return m.Net.is("is_parallel_attn") || m.Net.is("mlp_attn_share_input") }
