package spec

import (
	"path/filepath"
	"reflect"
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
	for _, v := range append(wordValues(), otherValues...) {
		if sharedActivation.MatchString(v.name) {
			continue
		}
		if !inVariants(v.name) && !slices.ContainsFunc(models, v.in) {
			t.Errorf("%s: no model of testdata/families has it; add one to make.py", v.name)
		}
	}
}

// sharedActivation matches activations of mixers and dense layers, which use the ops of activation_function.
var sharedActivation = regexp.MustCompile(`^([a-z0-9_]+\.activation|embedding_dense)=[a-z]`)

// wordValues returns the words of network_structure's keys, from their tags.
func wordValues() []moduleValue {
	var out []moduleValue
	add := func(key, words string, field func(m *Model) reflect.Value) {
		for _, word := range strings.Split(words, "|") {
			if canonicalWord(word) != word {
				continue // an alias of another word
			}
			out = append(out, moduleValue{key + "=" + word, func(m *Model) bool {
				if need := activeKeys[key]; need != nil && !need(m) {
					return false
				}
				f := field(m)
				if key == "qk_norm_function" && f.String() == "" {
					return m.Net.NormalizationFunction == word
				}
				switch {
				case !f.IsValid():
					return false
				case f.Kind() == reflect.Slice:
					return slices.Contains(f.Interface().([]string), word)
				}
				return f.String() == word
			}})
		}
	}
	var section func(prefix string, typ reflect.Type, v func(m *Model) reflect.Value)
	section = func(prefix string, typ reflect.Type, v func(m *Model) reflect.Value) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			field := func(m *Model) reflect.Value { return v(m).Field(i) }
			if words := f.Tag.Get("words"); words != "" {
				add(prefix+f.Tag.Get("yaml"), words, field)
			}
			if f.Type.Kind() == reflect.Struct {
				section(prefix+f.Tag.Get("yaml")+".", f.Type, field)
			}
		}
	}
	section("", reflect.TypeFor[Network](), func(m *Model) reflect.Value { return reflect.ValueOf(m.Net).Elem() })
	scaling, _ := reflect.TypeFor[RopeScaling]().FieldByName("RopeType")
	add("rope_scaling.rope_type", scaling.Tag.Get("words"), func(m *Model) reflect.Value {
		if m.Net.RopeScaling == nil {
			return reflect.Value{}
		}
		if m.Net.RopeScaling.RopeType == "" {
			return reflect.ValueOf(m.Net.RopeScaling.Type)
		}
		return reflect.ValueOf(m.Net.RopeScaling.RopeType)
	})
	return out
}

// activeKeys maps keys to conditions under which their values affect the results.
var activeKeys = map[string]func(m *Model) bool{
	"qk_norm":            func(m *Model) bool { return withQKNorm(m) || m.Net.QKNorm == "rope_layers" },
	"qk_norm_function":   withQKNorm,
	"qk_norm_position":   withQKNorm,
	"rope_pattern":       func(m *Model) bool { return m.Net.PositionEmbedding == "rope" },
	"attention_pattern":  func(m *Model) bool { return m.Net.SlidingWindow > 0 || m.Net.AttentionChunk > 0 },
	"moe_score":          withExperts,
	"moe_group_score":    func(m *Model) bool { return withExperts(m) && m.Net.MoEGroups > 1 },
	"moe_activation":     withExperts,
	"moe_weight_layout":  withStackedExperts,
	"moe_gate_up":        withStackedExperts,
	"pooler_activation":  func(m *Model) bool { return m.has("pooler.weight") },
	"head_activation":    func(m *Model) bool { return m.has("output_transform.weight") && m.Net.encodes() },
	"classifier_pooling": func(m *Model) bool { return m.has("classifier.weight") },
}

func withQKNorm(m *Model) bool         { return hasLike(m, "self_attn.q_norm") }
func withExperts(m *Model) bool        { return m.Net.ExpertCount > 0 && hasLike(m, ".moe.") }
func withStackedExperts(m *Model) bool { return withExperts(m) && hasLike(m, ".moe.experts.w2") }

// hasLike reports whether the standard name of some tensor contains part.
func hasLike(m *Model, part string) bool {
	return slices.ContainsFunc(m.Tensors(), func(std string) bool { return strings.Contains(std, part) })
}

func fused(format int, heads func(h Hyper) bool) func(m *Model) bool {
	return func(m *Model) bool {
		return hasLike(m, "self_attn.qkv.weight") && m.Net.QKVFormat == format && heads(m.Hyper)
	}
}

func ropes(test func(m *Model) bool) func(m *Model) bool {
	return func(m *Model) bool { return m.Net.PositionEmbedding == "rope" && test(m) }
}

func mha(h Hyper) bool { return h.KVHeads == h.Heads && h.Heads > 1 }
func gqa(h Hyper) bool { return h.KVHeads > 1 && h.KVHeads < h.Heads }
func mqa(h Hyper) bool { return h.KVHeads == 1 && h.Heads > 1 }

// otherValues are the choices that are not words: numbers, flags and choices that
// follow from the tensors.
var otherValues = []moduleValue{
	{"learned positions", func(m *Model) bool { return hasLike(m, "pos_embeddings") }},
	{"pos_embedding_offset", func(m *Model) bool { return m.Net.PosEmbeddingOffset > 0 }},
	{"qk_column_order=0 or 1", ropes(func(m *Model) bool { return m.Net.QKColumnOrder != 2 })},
	{"qk_column_order=2", ropes(func(m *Model) bool { return m.Net.QKColumnOrder == 2 })},
	{"adjacent, partial rotation", ropes(func(m *Model) bool { return m.Net.QKColumnOrder != 2 && m.Hyper.RopeDim < m.Hyper.HeadDim })},
	{"halves, partial rotation", ropes(func(m *Model) bool { return m.Net.QKColumnOrder == 2 && m.Hyper.RopeDim < m.Hyper.HeadDim })},
	{"rope_local_theta", ropes(func(m *Model) bool { return m.Net.RopeLocalTheta > 0 })},
	{"qkv_format=0 MHA", fused(0, mha)},
	{"qkv_format=0 GQA", fused(0, gqa)},
	{"qkv_format=0 MQA", fused(0, mqa)},
	{"qkv_format=1 MHA", fused(1, mha)},
	{"qkv_format=1 GQA", fused(1, gqa)},
	{"qkv_format=1 MQA", fused(1, mqa)},
	{"residual: pre-norm, sequential", func(m *Model) bool {
		return !parallel(m) && hasLike(m, "self_attn.pre_norm") && hasLike(m, "feed_forward.pre_norm")
	}},
	{"residual: post-norm", func(m *Model) bool { return hasLike(m, "self_attn.post_norm") && m.Net.IsAttnPostAsResidual }},
	{"residual: post-norm as FFN input", func(m *Model) bool { return hasLike(m, "self_attn.post_norm") && !m.Net.IsAttnPostAsResidual }},
	{"residual: parallel, shared norm", func(m *Model) bool { return m.Net.IsParallelAttn && !m.Net.MLPAttnShareInput }},
	{"residual: parallel, own norm", func(m *Model) bool { return m.Net.MLPAttnShareInput }},
	{"residual: from the normed value", func(m *Model) bool { return m.Net.ResidualNormed }},
	{"norms on sub-layer outputs", func(m *Model) bool { return hasLike(m, "self_attn.out_norm") }},
	{"norms without parameters", func(m *Model) bool { return !m.Net.NormParameters }},
	{"FFN: plain", func(m *Model) bool { return !hasLike(m, ".w3.") && !hasLike(m, ".w1n3.") && !withExperts(m) }},
	{"FFN: gated", func(m *Model) bool { return hasLike(m, "feed_forward.w3.weight") }},
	{"FFN: packed gate", func(m *Model) bool { return hasLike(m, "feed_forward.w1n3.weight") }},
	{"experts: renormalized", func(m *Model) bool { return withExperts(m) && m.Net.MoENormTopKProb }},
	{"experts: not renormalized", func(m *Model) bool { return withExperts(m) && !m.Net.MoENormTopKProb }},
	{"experts: shared", func(m *Model) bool { return hasLike(m, "moe.shared_expert.w1") }},
	{"experts: none shared", func(m *Model) bool { return withExperts(m) && !hasLike(m, "moe.shared_expert.w1") }},
	{"experts: some layers dense", func(m *Model) bool { return withExperts(m) && !m.has("dec.{i}.moe.gate.weight") }},
	{"experts: layer end", func(m *Model) bool { return withExperts(m) && m.Net.MoELayerEnd >= 0 }},
	{"experts: layer step", func(m *Model) bool { return withExperts(m) && m.Net.MoELayerStep > 1 }},
	{"experts: fewer than stored", func(m *Model) bool {
		return withExperts(m) && m.Net.UsingExpertCount > 0 && m.Net.UsingExpertCount < m.Net.ExpertCount
	}},
	{"experts: groups", func(m *Model) bool { return withExperts(m) && m.Net.MoEGroups > 1 }},
	{"experts: scaled", func(m *Model) bool { return withExperts(m) && m.Net.MoEScale != 1 }},
	{"latent attention", func(m *Model) bool { return m.Net.LatentAttention }},
	{"attention sinks", func(m *Model) bool { return m.Net.AttentionSinks }},
	{"attention: window", func(m *Model) bool { return m.Net.SlidingWindow > 0 }},
	{"weight_groups", func(m *Model) bool {
		return m.Net.WeightGroups > 1 && m.Net.WeightGroupLayers == 1 && m.Hyper.Layers%m.Net.WeightGroups > 0
	}},
	{"weight_group_layers", func(m *Model) bool { return m.Net.WeightGroups > 1 && m.Net.WeightGroupLayers > 1 }},
	{"attn_softcap", func(m *Model) bool { return m.Net.AttnSoftcap > 0 }},
	{"attn_scale", func(m *Model) bool { return m.Net.AttnScale != 0 }},
	{"qkv_clamp", func(m *Model) bool { return m.Net.QKVClamp > 0 }},
	{"embeddings times √width", func(m *Model) bool { return m.Net.HasEmbeddingLinearNorm && m.Net.EmbeddingLinearScale <= 1e-4 }},
	{"embeddings times a constant", func(m *Model) bool { return m.Net.HasEmbeddingLinearNorm && m.Net.EmbeddingLinearScale > 1e-4 }},
	{"attn_out_scale", func(m *Model) bool { return m.Net.AttnOutScale != 1 }},
	{"ffn_out_scale", func(m *Model) bool { return m.Net.FFNOutScale != 1 }},
	{"out_scale", func(m *Model) bool { return m.Net.OutScale != 1 }},
	{"attn_pre_norm_base", func(m *Model) bool { return m.Net.AttnPreNormBase != 0 }},
	{"ffn_pre_norm_base", func(m *Model) bool { return m.Net.FFNPreNormBase != 0 }},
	{"output_norm_base", func(m *Model) bool { return m.Net.OutputNormBase != 0 }},
	{"logit_scale", func(m *Model) bool { return m.Net.LogitScale != 1 }},
	{"logit_softcap", func(m *Model) bool { return m.Net.LogitSoftcap > 0 }},
	{"head: separate", func(m *Model) bool { return m.has("output.weight") && !m.Net.TiedEmbeddings }},
	{"head: tied", func(m *Model) bool { return m.Net.decodes() && (!m.has("output.weight") || m.Net.TiedEmbeddings) }},
	{"head: rows of unit length", func(m *Model) bool { return m.Net.NormalizeLMHead }},
	{"head: biased", func(m *Model) bool { return m.Net.decodes() && m.has("output.bias") }},
	{"head: masked LM", func(m *Model) bool { return !m.Net.decodes() && m.has("output.bias") }},
	{"head: padded vocabulary", func(m *Model) bool { return m.Hyper.Rows > m.Hyper.Vocab }},
	{"embeddings narrower than the layers", func(m *Model) bool { return m.has("input_transform.weight") }},
	{"weight_layout=in_out, biased", func(m *Model) bool { return m.Net.WeightLayout == "in_out" && hasLike(m, "wo.bias") }},
}

func parallel(m *Model) bool { return m.Net.IsParallelAttn || m.Net.MLPAttnShareInput }
