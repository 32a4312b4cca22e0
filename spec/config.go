package spec

import (
	_ "embed"
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/kit/regular"
	"gopkg.in/yaml.v3"
)

// maxConfig is the maximum size in bytes of config.json and of a model spec.
// Real files are a few kB, or a few MB with a vocabulary of special tokens.
const maxConfig = 16 << 20

// readConfig reads a config.json.
func readConfig(path string) (map[string]any, error) {
	b, err := regular.ReadIn(filepath.Dir(path), filepath.Base(path), maxConfig)
	if err != nil {
		return nil, err
	}
	var c map[string]any
	if err := json.Unmarshal(withoutInfinities(b), &c); err != nil {
		return nil, &Error{Pos: Pos{File: path}, What: "not a JSON object: " + err.Error()}
	}
	if c == nil {
		return nil, &Error{Pos: Pos{File: path}, What: "have null, want a JSON object"}
	}
	return textConfig(c), nil
}

// infinities matches texts, and the numbers that Python writes although JSON has none.
// Such a number stands for the absence of a limit.
var infinities = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|([\[,:]\s*)(?:-?(?:Infinity|NaN)\b|\{\s*"__float__"\s*:\s*"(?:-?Infinity|NaN)"\s*\})`)

// withoutInfinities replaces infinite numbers by null.
func withoutInfinities(src []byte) []byte {
	return infinities.ReplaceAllFunc(src, func(match []byte) []byte {
		if match[0] == '"' {
			return match
		}
		return append(match[:1:1], "null"...)
	})
}

// textConfig merges the text_config of a multimodal model into the top level of its
// configuration. The values of text_config take precedence, except for whether the whole
// model's output matrix is tied. Older configurations have the text's values at the top
// level, perhaps with another copy in text_config. That of a model that also speaks is in
// thinker_config.
func textConfig(c map[string]any) map[string]any {
	if thinker, speaks := c["thinker_config"].(map[string]any); speaks {
		c = thinker
	}
	out := maps.Clone(c)
	text, nested := c["text_config"].(map[string]any)
	if nested && (c["hidden_size"] == nil || text["hidden_size"] != nil) {
		maps.Copy(out, text)
		if tied := c["tie_word_embeddings"]; tied != nil {
			out["tie_word_embeddings"] = tied
		}
		out["text_only"] = true
	}
	if _, vision := c["vision_config"].(map[string]any); vision {
		out["text_only"] = true
	}
	ropeForms(out)
	return out
}

// ropeForms reduces the forms of rope's parameters. Of a section under both of its names,
// transformers reads rope_scaling, the older one. rope_parameters may have a section for
// each kind of layers instead; that of full_attention may be missing.
func ropeForms(config map[string]any) {
	older, _ := config["rope_scaling"].(map[string]any)
	newer, _ := config["rope_parameters"].(map[string]any)
	_, full := newer["full_attention"]
	_, sliding := newer["sliding_attention"]
	switch {
	case !full && !sliding && len(older) > 0:
		delete(config, "rope_parameters")
	case (full || sliding) && newer["full_attention"] == nil:
		newer = maps.Clone(newer)
		newer["full_attention"] = map[string]any{}
		config["rope_parameters"] = newer
	}
}

//go:embed spellings.yaml
var spellingsYAML string

// A pair is a name and what it stands for, in the order of the file.
type pair struct{ from, to string }

// spellings are the names that files have for others, by kind.
var spellings = sync.OnceValue(func() map[string][]pair {
	out := map[string][]pair{}
	for kind, n := range data[map[string]yaml.Node]("spellings.yaml", spellingsYAML) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			out[kind] = append(out[kind], pair{n.Content[i].Value, n.Content[i+1].Value})
		}
	}
	return out
})

// spelled returns what a name of a kind stands for.
func spelled(kind, name string) (string, bool) {
	for _, p := range spellings()[kind] {
		if p.from == name {
			return p.to, true
		}
	}
	return "", false
}

// ggufConfig converts GGUF metadata to the form of config.json.
func ggufConfig(meta map[string]any) map[string]any {
	c := map[string]any{"model_file_format": "gguf", "tie_word_embeddings": false} // unless the file has no output matrix
	arch, _ := meta["general.architecture"].(string)
	c["model_type"] = arch
	for _, k := range spellings()["gguf"] {
		v, ok := meta[arch+"."+k.from]
		if !ok {
			continue
		}
		outer, inner, nested := strings.Cut(k.to, ".")
		if !nested {
			ggufValue(c, k.to, plain(v))
			continue
		}
		m, _ := c[outer].(map[string]any)
		if m == nil {
			m = map[string]any{}
			c[outer] = m
		}
		m[inner] = plain(v)
	}
	ggufYarn(c)
	ggufSparsity(c)
	if n, ok := number(c["num_nextn_predict_layers"]); ok { // which block_count includes
		if layers, ok := number(c["num_hidden_layers"]); ok {
			c["num_hidden_layers"] = layers - n
		}
	}
	for _, k := range spellings()["tokens"] {
		if v, ok := meta[k.from]; ok {
			c[k.to] = plain(v)
		}
	}
	if tokens, ok := meta["tokenizer.ggml.tokens"].([]string); ok && c["vocab_size"] == nil {
		c["vocab_size"] = float64(len(tokens))
	}
	return c
}

// ggufYarn sets mscale and mscale_all_dim. Files have a tenth of the second, and llama.cpp
// takes the first to equal it, as it does in the published models of DeepSeek.
func ggufYarn(c map[string]any) {
	scaling, _ := c["rope_scaling"].(map[string]any)
	if tenth, stated := number(scaling["yarn_log_multiplier"]); stated {
		scaling["mscale"], scaling["mscale_all_dim"] = 10*tenth, 10*tenth
	}
}

// ggufSparsity converts quantiles of a standard normal distribution to fractions.
func ggufSparsity(c map[string]any) {
	list, ok := c["activation_sparsity_scale"].([]any)
	if !ok {
		return
	}
	out := make([]any, len(list))
	for i, v := range list {
		x, _ := number(v)
		out[i] = float64(float32(math.Erfc(-x/math.Sqrt2) / 2))
	}
	c["activation_sparsity_pattern"] = out
}

// ggufValue sets a parameter. A list with a number for each layer, 0 for layers without
// the module, is NAME_by_layer, and NAME is the number of the others if they have one.
// A number of heads or an FFN of 0 means that there is none.
func ggufValue(c map[string]any, name string, v any) {
	switch name {
	case "num_attention_heads", "num_key_value_heads", "intermediate_size", "swiglu_limit":
	default:
		c[name] = v
		return
	}
	list, ok := v.([]any)
	if !ok {
		if !sameValue(v, 0) {
			c[name] = v
		}
		return
	}
	c[name+"_by_layer"] = list
	for _, x := range list {
		if sameValue(x, 0) {
			continue
		}
		if one, set := c[name]; set && !sameValue(x, one) {
			c[name] = v // they differ
			return
		}
		c[name] = x
	}
}

// plain converts a metadata value to the type that a JSON decoder would return.
func plain(v any) any {
	if f, ok := v.(float32); ok {
		return tensor.Decimal(f)
	}
	if n, ok := number(v); ok {
		return n
	}
	switch list := v.(type) {
	case []int32:
		return plainList(list)
	case []uint32:
		return plainList(list)
	case []float32:
		return plainList(list)
	case []bool:
		out := make([]any, len(list))
		for i, b := range list {
			out[i] = b
		}
		return out
	}
	return v
}

func plainList[T int32 | uint32 | float32](list []T) any {
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = plain(x)
	}
	return out
}

// llama2cConfig converts a llama2.c header to the form of config.json. The
// constants are those of llama2.c's run.c; the file does not store them.
func llama2cConfig(meta map[string]any) map[string]any {
	c := map[string]any{"model_file_format": "llama2.c", "model_type": "llama", "rms_norm_eps": 1e-5, "rope_theta": 10000.0}
	for _, k := range spellings()["llama2c"] {
		if n, ok := number(meta[k.from]); ok {
			c[k.to] = math.Abs(n)
		}
	}
	if shared, ok := meta["shared_classifier"].(bool); ok {
		c["tie_word_embeddings"] = shared
	}
	return c
}
