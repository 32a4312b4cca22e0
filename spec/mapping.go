package spec

import (
	_ "embed"
	"path"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// A nameRule maps a stored tensor name to a standard name.
type nameRule struct {
	stored   *Pattern
	standard *Pattern
	whole    bool // the name has the prefix as its entry states it
	pos      Pos  // of the model spec's entry; zero for the built-in maps
}

//go:embed names.yaml
var namesYAML []byte

// A nameList is a list of names.yaml.
type nameList struct {
	format string // gguf; original: the files that Meta published; "": transformers
	rules  []nameRule
}

// defaultNames returns the lists of names.yaml.
var defaultNames = sync.OnceValue(func() []nameList {
	var maps []struct {
		Name, Format, Prefix string
		Mapping              yaml.Node
	}
	if err := yaml.Unmarshal(namesYAML, &maps); err != nil {
		panic("bug: names.yaml: " + err.Error())
	}
	var lists []nameList
	for _, m := range maps {
		var entries []Entry
		for i := 0; i+1 < len(m.Mapping.Content); i += 2 {
			entries = append(entries, Entry{Key: m.Mapping.Content[i].Value, Val: m.Mapping.Content[i+1].Value, Prefix: m.Prefix})
		}
		rules, err := rulesOfAll(entries)
		if err != nil {
			panic("bug: names.yaml: " + err.Error())
		}
		lists = append(lists, nameList{m.Format, rules})
	}
	return lists
})

// ggufNames returns the names that GGUF files have for tensors.
var ggufNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, l := range defaultNames() {
		for _, r := range l.rules {
			names[r.stored.String()] = names[r.stored.String()] || l.format == "gguf"
		}
	}
	return names
})

// defaultRules returns the built-in rules of names.yaml.
var defaultRules = sync.OnceValue(func() []nameRule {
	var rules []nameRule
	for _, l := range defaultNames() {
		rules = append(rules, l.rules...)
	}
	return rules
})

// rulesOf returns the rules of an entry: with its prefix, without it, and with
// "model." added or removed. transformers saves a model with or without the
// prefix of its head.
func rulesOf(e Entry) ([]nameRule, error) {
	std, err := ParsePattern(standardName(e.Val))
	if err != nil {
		return nil, errAt(e.Pos, "standard name %v", err)
	}
	var out []nameRule
	names := []string{e.Prefix + e.Key, e.Key, "model." + e.Prefix + e.Key, strings.TrimPrefix(e.Prefix, "model.") + e.Key}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		p, err := ParsePattern(name)
		if err != nil {
			return nil, errAt(e.Pos, "tensor name %v", err)
		}
		out = append(out, nameRule{p, std, i == 0, e.Pos})
	}
	return out, nil
}

// rulesOfAll returns the rules of all entries.
func rulesOfAll(entries []Entry) ([]nameRule, error) {
	var out []nameRule
	for _, e := range entries {
		r, err := rulesOf(e)
		if err != nil {
			return nil, err
		}
		out = append(out, r...)
	}
	return out, nil
}

// standardName returns the canonical name of a standard name that has aliases.
func standardName(s string) string {
	switch s {
	case "token_embeddings.weight", "shared.weight":
		return "dec.token_embeddings.weight"
	case "enc.output.weight", "enc.output.bias", "dec.output.weight", "dec.output.bias":
		return s[len("enc."):]
	}
	return s
}

// standardForms are the last parts of standard names.
var standardForms = []string{
	"token_embeddings", "pos_embeddings", "token_type_embeddings", "task_type_embeddings", "input_norm", "output_norm", "output_post_norm", "output",
	"input_transform", "input_transform.pre_norm", "input_transform.post_norm",
	"output_transform", "output_transform.pre_norm", "output_transform.post_norm",
	"self_attn.pre_norm", "self_attn.post_norm", "self_attn.second_post_norm", "self_attn.out_norm", "self_attn.sub_norm", "self_attn.q_norm", "self_attn.k_norm",
	"self_attn.q_norm.{j}", "self_attn.k_norm.{j}", "self_attn.sinks", "self_attn.global_wq", "self_attn.global_wk", "self_attn.global_wv", "self_attn.rel_wk", "self_attn.rel_wq", "relative_embeddings", "relative_norm", "self_attn.relative_bias",
	"self_attn.qkv", "self_attn.wq", "self_attn.wk", "self_attn.wv", "self_attn.wo",
	"self_attn.wq_a", "self_attn.q_a_norm", "self_attn.wq_b", "self_attn.wkv_a", "self_attn.kv_a_norm", "self_attn.wkv_b",
	"self_attn.lambda_q1", "self_attn.lambda_k1", "self_attn.lambda_q2", "self_attn.lambda_k2",
	"self_attn.wk_b", "self_attn.wv_b", "self_attn.wg",
	"self_attn.index_wq", "self_attn.index_wk", "self_attn.index_k_norm", "self_attn.index_weights",
	"self_attn.wkv", "self_attn.kv_norm", "self_attn.wo_a", "self_attn.wo_b",
	"self_attn.pool", "self_attn.pool_wkv", "self_attn.pool_wgate", "self_attn.pool_norm",
	"self_attn.index_pool", "self_attn.index_pool_wkv", "self_attn.index_pool_wgate", "self_attn.index_pool_norm",
	"self_attn_streams", "self_attn_streams.base", "self_attn_streams.scale",
	"feed_forward_streams", "feed_forward_streams.base", "feed_forward_streams.scale", "streams_out", "streams_out.base", "streams_out.scale",
	"linear_attn.wq", "linear_attn.wk", "linear_attn.wv", "linear_attn.qkv", "linear_attn.qkvz", "linear_attn.wg", "linear_attn.wg_a", "linear_attn.wg_b",
	"linear_attn.wa", "linear_attn.wa_a", "linear_attn.wa_b", "linear_attn.wb", "linear_attn.wba", "linear_attn.q_norm", "linear_attn.k_norm",
	"linear_attn.conv", "linear_attn.q_conv", "linear_attn.k_conv", "linear_attn.v_conv", "linear_attn.a_log", "linear_attn.dt", "linear_attn.norm", "linear_attn.wo",
	"scan.win", "scan.conv", "scan.x_proj", "scan.dt_norm", "scan.b_norm", "scan.c_norm", "scan.a_log", "scan.d", "scan.wo",
	"ssd.win", "ssd.conv", "ssd.dt", "ssd.a_log", "ssd.d", "ssd.norm", "ssd.wo",
	"scan.dt", "scan.norm",
	"short_conv.win", "short_conv.conv", "short_conv.wo",
	"rg_lru.wx", "rg_lru.wy", "rg_lru.conv", "rg_lru.a", "rg_lru.input_gate", "rg_lru.recurrent_gate", "rg_lru.wo",
	"time_mix.wr", "time_mix.wk", "time_mix.wv", "time_mix.wo", "time_mix.norm", "time_mix.k_k", "time_mix.k_a", "time_mix.r_k",
	"time_mix.shift", "time_mix.shift_r", "time_mix.shift_w", "time_mix.shift_k", "time_mix.shift_v", "time_mix.shift_a", "time_mix.shift_g",
	"time_mix.w_a", "time_mix.w_b", "time_mix.a_a", "time_mix.a_b", "time_mix.v_a", "time_mix.v_b", "time_mix.g_a", "time_mix.g_b", "feed_forward.shift",
	"shared.pre_norm", "shared.wq", "shared.wk", "shared.wv", "shared.wo", "shared.ffn_norm", "shared.w1n3", "shared.w2", "shared.out",
	"shared.wq_adapter_a", "shared.wq_adapter_b", "shared.wk_adapter_a", "shared.wk_adapter_b", "shared.wv_adapter_a", "shared.wv_adapter_b",
	"shared.w1n3_adapter_a", "shared.w1n3_adapter_b",
	"cross_attn.pre_norm", "cross_attn.post_norm", "cross_attn.qkv", "cross_attn.wq", "cross_attn.wk", "cross_attn.wv", "cross_attn.wo",
	"feed_forward.pre_norm", "feed_forward.post_norm", "feed_forward.out_norm", "feed_forward.sub_norm",
	"feed_forward.w1", "feed_forward.w2", "feed_forward.w3", "feed_forward.w1n3", "feed_forward.w3n1", "feed_forward.act_p", "feed_forward.act_n",
	"moe.gate", "moe.gate_table", "moe.expert.{j}.w1", "moe.expert.{j}.w2", "moe.expert.{j}.w3",
	"feed_forward.dense_out_norm", "moe.pre_norm", "moe.out_norm", "moe.gate_norm", "moe.expert_scale", "out_scale",
	"altup.in.{j}", "altup.out.{j}", "altup.in", "altup.out", "altup.router_norm", "altup.router", "altup.predict", "altup.correct", "altup.out_scale",
	"laurel.a", "laurel.b", "laurel.norm",
	"per_layer.embeddings", "per_layer.proj", "per_layer.norm", "per_layer.gate", "per_layer.out", "per_layer.out_norm",
	"moe.gate_score", "moe.out", "moe.latent_in", "moe.latent_out", "moe.experts.w1", "moe.experts.w2", "moe.experts.w3", "moe.experts.w1n3",
	"moe.shared_expert.gate", "moe.shared_expert.w1", "moe.shared_expert.w2", "moe.shared_expert.w3", "moe.shared_expert.w1n3",
	"convolution", "convolution_norm", "pooler", "classifier", "embedding_dense.{j}",
}

// checkStandard returns an error if the entry's value is not a standard name.
func checkStandard(e Entry) error {
	name := standardName(e.Val)
	form := strings.TrimPrefix(strings.TrimPrefix(name, "dec."), "enc.")
	form = strings.TrimPrefix(strings.TrimPrefix(form, "{i}."), secondPart)
	for _, suffix := range []string{".weight", ".bias"} {
		if base, ok := strings.CutSuffix(form, suffix); ok && slices.Contains(standardForms, base) {
			return nil
		}
	}
	base := strings.TrimSuffix(strings.TrimSuffix(form, ".weight"), ".bias")
	if base == form {
		return errAt(e.Pos, "tensor_name_mapping: %q is not a standard tensor name; want one that ends in .weight or .bias", e.Val)
	}
	hint := ""
	if n := spelling.Nearest(base, standardForms); n != "" && n != base {
		hint = "; did you mean " + strings.Replace(name, base, n, 1) + "?"
	}
	return errAt(e.Pos, "tensor_name_mapping: %q is not a standard tensor name%s", e.Val, hint)
}

// checkPatterns checks the tensor names of the model spec before files are opened.
func (s *Spec) checkPatterns() error {
	for _, e := range slices.Concat(s.Network.TensorNameMapping, s.Network.AttentionTensorNames) {
		if err := checkStandard(e); err != nil {
			return err
		}
		if _, err := rulesOf(e); err != nil {
			return err
		}
	}
	for _, e := range s.Types {
		if _, err := path.Match(e.Key, ""); err != nil {
			return errAt(e.Pos, "types: %q: %v", e.Key, err)
		}
		if _, err := ParseType(e.Val); err != nil {
			return errAt(e.Pos, "types: %v", err)
		}
	}
	for _, g := range s.Ignore {
		if _, err := path.Match(g, ""); err != nil {
			return errAt(s.Pos("ignore_tensors"), "ignore_tensors: %q: %v", g, err)
		}
	}
	return nil
}

// rules returns the model spec's rules, then the built-in rules.
func (s *Spec) rules() ([]nameRule, error) {
	out, err := rulesOfAll(s.Network.TensorNameMapping)
	if err != nil {
		return nil, err
	}
	out = append(out, defaultRules()...)
	if s.Config["text_only"] != true {
		return out, nil
	}
	return nestedRules(out)
}

// nestedRules returns rules for the names of a language model inside a multimodal
// model: language_model.model.layers…, or model.language_model.layers…,
// or thinker.model.layers….
func nestedRules(rules []nameRule) ([]nameRule, error) {
	out := make([]nameRule, 0, 4*len(rules))
	for _, r := range rules {
		for _, prefix := range []string{"language_model.", "model.language_model.", "thinker."} {
			p, err := ParsePattern(prefix + r.stored.String())
			if err != nil {
				return nil, err
			}
			out = append(out, nameRule{p, r.standard, r.whole, r.pos})
		}
	}
	return append(out, rules...), nil
}

// otherModalities are patterns of the tensors of a multimodal model that text
// generation does not use.
var otherModalities = []string{
	"vision_tower.*", "model.vision_tower.*", "multi_modal_projector.*", "model.multi_modal_projector.*", "vision_model.*", "model.vision_model.*",
	"visual.*", "model.visual.*", "audio_tower.*", "model.audio_tower.*",
	"embed_vision.*", "model.embed_vision.*", "embed_audio.*", "model.embed_audio.*", "vision_embedder.*", "model.vision_embedder.*",
}

// ignored reports whether the tensor is not part of the computation.
func (s *Spec) ignored(name string) bool {
	ignore := s.Ignore
	if s.Config["text_only"] == true {
		ignore = append(slices.Clone(ignore), otherModalities...)
	}
	return matchesAny(ignore, name)
}

// matchesAny reports whether a tensor's name matches one of the patterns.
func matchesAny(patterns []string, name string) bool {
	for _, g := range patterns {
		// Fast path: most names already differ in their last part, and models have up to 50,000 names.
		if i := strings.LastIndexByte(g, '*'); i >= 0 && !strings.ContainsAny(g[i:], `?[\`) && !strings.HasSuffix(name, g[i+1:]) {
			continue
		}
		if ok, err := path.Match(g, name); err == nil && ok {
			return true
		}
	}
	return false
}
