package spec

import (
	"strings"
	"testing"
)

// small is a model spec that needs no config.json. Tests append keys to it.
const small = `iflow: 1
name: small
hyper: {hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 4, vocab_size: 100}
network_structure:
  type: llama
`

const smallHeaders = `model.embed_tokens.weight f32 100 64
model.layers.{0..2}.input_layernorm.weight f32 64
model.layers.{0..2}.self_attn.q_proj.weight f32 64 64
model.layers.{0..2}.self_attn.k_proj.weight f32 64 64
model.layers.{0..2}.self_attn.v_proj.weight f32 64 64
model.layers.{0..2}.self_attn.o_proj.weight f32 64 64
model.layers.{0..2}.post_attention_layernorm.weight f32 64
model.layers.{0..2}.mlp.gate_proj.weight f32 160 64
model.layers.{0..2}.mlp.up_proj.weight f32 160 64
model.layers.{0..2}.mlp.down_proj.weight f32 64 160
model.norm.weight f32 64
`

// TestParseErrors checks the messages for invalid model specs: position, value,
// expected value and nearest valid name.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"empty", "", "bad.yaml: empty; want a model spec"},
		{"not yaml", "a: [1,\nb", `bad.yaml:2:1: not YAML`},
		{"not a mapping", "- 1", "bad.yaml:1:1: have a list, want a mapping of keys"},
		{"unknown key", "modle_files: [x]", `bad.yaml:1:1: unknown key "modle_files"; did you mean "model_files"?`},
		{"unknown module key", small + "  rope_teta: 1", `bad.yaml:6:3: unknown key "rope_teta" in network_structure; did you mean "rope_theta"?`},
		{"twice", "name: a\nname: b", "bad.yaml:2:1: name: given twice"},
		{"wrong type", small + "  rope_theta: fast", `bad.yaml:6:15: network_structure.rope_theta: have "fast", want a number`},
		{"integer", "vocab_size: 1.5", "bad.yaml:1:13: vocab_size: have 1.5, want an integer"},
		{"bool", small + "  is_parallel_attn: 1", "bad.yaml:6:21: network_structure.is_parallel_attn: have 1, want true or false"},
		{"list", "model_files: a.bin", `bad.yaml:1:14: model_files: have "a.bin", want a list`},
		{"word", small + "  normalization_function: rsm", `bad.yaml:6:27: network_structure.normalization_function: have "rsm"; did you mean "rms"?`},
		{"version", "iflow: 2", "bad.yaml:1:1: iflow: have version 2, want 1"},
		{"type name", "quant: q4_b46", `bad.yaml:1:8: quant: have "q4_b46", which is not a weight type; did you mean "q4_b64"?`},
		{"stored type", "quant: q4_k", `bad.yaml:1:8: quant: q4_k is a type of llama.cpp; the nearest size of iflowc is q4 (q4t_b32, 4.25 bits)`},
		{"cached type", "kv_type: q8_b64", `bad.yaml:1:1: kv_type: have "q8_b64", which is not a KV cache type; want one of bf16, f16, f32, q4_b32t2, q8_b32t2`},
		{"no type", "name: a", "bad.yaml: network_structure.type: missing"},
		{"wide heads", small + "  head_dim: 16777217", "bad.yaml:6:3: network_structure.head_dim: have 16777217, want 0 (derived) to 16777216"},
		{"no rows of an indexer", small + "  indexer: {top_k: 0}", "bad.yaml:6:13: network_structure.indexer.top_k: have 0, want 1 to 16777216"},
		{"padding", small + "padded_vocab_size: 10\nvocab_size: 20", "bad.yaml:6:1: padded_vocab_size: have 10, less than vocab_size 20"},
		{"mapping pattern", small + "  tensor_name_mapping:\n    \"a.{k}.weight\": \"dec.{i}.self_attn.wq.weight\"", `bad.yaml:7:5: tensor name "a.{k}.weight": column 4`},
		{"devices", small + "devices: \"0;1&&2\"", `bad.yaml:6:1: devices: "0;1&&2": column 5`},
		{"expression", small + "  rope_theta: $a +", `expression "$a +"`},
		{"family", "family: lama", `bad.yaml:1:1: family: unknown "lama"; did you mean "llama"?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("bad.yaml", []byte(c.src), nil, Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("have error %v\nwant        %s", err, c.want)
			}
		})
	}
}

// TestResolveErrors checks the messages for files that do not match the model spec.
func TestResolveErrors(t *testing.T) {
	for _, c := range []struct{ name, src, headers, want string }{
		{"missing hyper", strings.Replace(small, "hidden_size: 64, ", "", 1), smallHeaders, "hyper-parameter hidden_size: missing"},
		{"hyper type", strings.Replace(small, "hidden_size: 64", "hidden_size: wide", 1), smallHeaders, `spec.yaml:3:9: hyper-parameter hidden_size: have "wide", want one integer`},
		{"heads", strings.Replace(small, "heads: 4", "heads: 4, num_key_value_heads: 3", 1), smallHeaders, "spec.yaml:3:72: num_key_value_heads: want a divisor of num_attention_heads (heads 4, kv 3, num_key_value_heads 3)"},
		{"missing tensor", small, strings.Replace(smallHeaders, "self_attn.k_proj", "self_attn.key_proj", 1), "tensor dec.0.self_attn.wk.weight: missing; want it stored as model.layers.0.self_attn.k_proj.weight"},
		{"unused near", small, strings.Replace(smallHeaders, "self_attn.k_proj", "self_attn.key_proj", 1), `the files have "model.layers.0.self_attn.key_proj.weight", which is unused`},
		{"missing in one layer", small, strings.Replace(smallHeaders, "{0..2}.mlp.up_proj", "{0..1}.mlp.up_proj", 1), "tensor dec.1.feed_forward.w3.weight: missing"},
		{"bias in one layer", small, smallHeaders + "model.layers.0.self_attn.q_proj.bias f32 64\n", "tensor dec.1.self_attn.wq.bias: missing"},
		{"bias in one layer, as stated", small + "  uneven_tensors: [self_attn.wq.bias]\n", smallHeaders + "model.layers.0.self_attn.q_proj.bias f32 64\n", ""},
		{"norm in another shape", small, strings.Replace(smallHeaders, "model.layers.{0..2}.input_layernorm.weight f32 64", "model.layers.0.input_layernorm.weight f32 64\nmodel.layers.1.input_layernorm.weight f32 64 1", 1), `tensor "model.layers.1.input_layernorm.weight" (dec.1.self_attn.pre_norm.weight): shape [64 1], want [64] (that of "model.layers.0.input_layernorm.weight")`},
		{"tensor of another layer's module", small + "  kv_pattern: [own, key]\n", smallHeaders, `tensor "model.layers.1.self_attn.v_proj.weight" maps to dec.1.self_attn.wv.weight, which no module of this network reads`},
		{"missing norm", small, strings.Replace(smallHeaders, "model.norm.weight f32 64\n", "", 1), "tensor dec.output_norm.weight: missing"},
		{"too many layers", small, smallHeaders + "model.layers.2.input_layernorm.weight f32 64\n", `tensor "model.layers.2.input_layernorm.weight" belongs to layer 2, but num_hidden_layers is 2`},
		{"unused", small, smallHeaders + "model.layers.0.self_attn.gate.weight f32 64 64\n", `tensor "model.layers.0.self_attn.gate.weight": no module uses it; the model probably computes with it: map it in tensor_name_mapping`},
		{"shape", small, strings.Replace(smallHeaders, "v_proj.weight f32 64 64", "v_proj.weight f32 32 64", 1), `spec.yaml:3:48: tensor "model.layers.0.self_attn.v_proj.weight" (dec.0.self_attn.wv.weight): shape [32 64], want [64, 64] (kv_heads 4, v_dim 16)`},
		{"integers", small, strings.Replace(smallHeaders, "model.norm.weight f32", "model.norm.weight i32", 1), `tensor "model.norm.weight" (dec.output_norm.weight): type i32, want a floating-point or block type`},
		{"twice", small, smallHeaders + "tok_embeddings.weight f32 100 64\n", "both map to dec.token_embeddings.weight; map one of them"},
		{"mapping target", small + "  tensor_name_mapping: {a.weight: tok_embeddings.weight}", smallHeaders + "a.weight f32 100 64\n", `"tok_embeddings.weight" is not a standard tensor name`},
		{"mapping target near", small + "  tensor_name_mapping:\n    \"model.layers.{i}.input_layernorm.weight\": \"dec.{i}.self_attn.pre_nrom.weight\"", smallHeaders, `spec.yaml:7:5: tensor_name_mapping: "dec.{i}.self_attn.pre_nrom.weight" is not a standard tensor name; did you mean dec.{i}.self_attn.pre_norm.weight?`},
		{"no norm", strings.Replace(small, "type: llama", "type: decoder_only", 1), smallHeaders, "normalization_function is not set; want one of std, rms, linear"},
		{"contradiction", small + "  is_parallel_attn: true\n  mlp_attn_share_input: true\n", smallHeaders, "spec.yaml:6:3: an FFN reads either attention's pre-norm or the layer's input; want one of is_parallel_attn and mlp_attn_share_input"},
		{"pattern without window", small + "  attention_pattern: [sliding, full]\n", smallHeaders, "spec.yaml:6:3: attention_pattern has sliding layers, but sliding_window is 0"},
		{"rope width", small + "  rope_dim: 20\n", smallHeaders, "spec.yaml:6:3: want an even number of rotated channels that fits in a head (fits False, rope_dim 20"},
		{"rope axes", small + "  rope_scaling: {type: mrope}\n  mrope_section: [2, 4, 1]\n", smallHeaders, "spec.yaml:7:3: want axes of positions that have all frequencies, half of the rotated channels (axes False, mrope_section [2, 4, 1])"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Parse("spec.yaml", []byte(c.src), nil, Options{})
			if err != nil {
				t.Fatal(err)
			}
			err = resolvedAndLowered(s, parseHeaders(t, c.headers))
			if c.want == "" && err == nil {
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("have error %v\nwant        %s", err, c.want)
			}
		})
	}
}

// TestShapeBlamesLine checks that a tensor's wrong shape is reported at the
// line of the model spec that maps it.
func TestShapeBlamesLine(t *testing.T) {
	src := small + "  tensor_name_mapping:\n    \"layers.{i}.att.value.weight\": \"dec.{i}.self_attn.wv.weight\"\n"
	s, err := Parse("spec.yaml", []byte(src), nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := strings.Replace(smallHeaders, "model.layers.{0..2}.self_attn.v_proj.weight f32 64 64", "layers.{0..2}.att.value.weight f32 64 63", 1)
	err = resolvedAndLowered(s, parseHeaders(t, h))
	if want := `spec.yaml:7:5: tensor "layers.0.att.value.weight"`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("have error %v, want %s…", err, want)
	}
}

// TestNotAvailable checks that an unsupported value is an error before any tensor is read.
func TestNotAvailable(t *testing.T) {
	for more, want := range map[string]string{
		"  rope_scaling: {rope_type: yarm, factor: 2}\n": `did you mean "yarn"`,
	} {
		if _, err := Parse("spec.yaml", []byte(small+more), nil, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("have error %v, want %s", err, want)
		}
	}
}

// TestUnreadTensor checks that a tensor with a standard name that the network does
// not read is not ignored silently.
func TestUnreadTensor(t *testing.T) {
	src := small + "  tensor_name_mapping: {\"model.layers.{i}.extra.weight\": \"dec.{i}.cross_attn.pre_norm.weight\"}\n"
	s, err := Parse("spec.yaml", []byte(src), nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Resolve(s, parseHeaders(t, smallHeaders+"model.layers.{0..2}.extra.weight f32 64\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := `tensor "model.layers.0.extra.weight" maps to dec.0.cross_attn.pre_norm.weight, which no module of this network reads; the model probably computes with it`
	if _, err := Lower(m); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("have error %v, want %s", err, want)
	}
}
