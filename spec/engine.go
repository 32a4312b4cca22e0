package spec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// An Engine is what a specification says of how its model is run, under the
// names of Inferflow's engine configuration. What is also a key of the
// specification itself means the same there, but that a template here is used
// whatever the model's files have; flags of the command line win over both.
type Engine struct {
	WeightType   tensor.DType `yaml:"device_weight_data_type"` // as quant
	WQ           string       `yaml:"device_weight_data_type.attn_wq"`
	WK           string       `yaml:"device_weight_data_type.attn_wk"`
	WV           string       `yaml:"device_weight_data_type.attn_wv"`
	WO           string       `yaml:"device_weight_data_type.attn_wo"`
	W1           string       `yaml:"device_weight_data_type.ffn_w1"`
	W2           string       `yaml:"device_weight_data_type.ffn_w2"`
	W3           string       `yaml:"device_weight_data_type.ffn_w3"`
	KVType       tensor.DType `yaml:"device_kv_cache_data_type"` // as kv_type
	HostWeight   tensor.DType `yaml:"host_weight_data_type"`     // of layers on the processor; here as device_weight_data_type
	HostKV       tensor.DType `yaml:"host_kv_cache_data_type"`   // of layers on the processor; here as device_kv_cache_data_type
	Threshold    int          `yaml:"tensor_quant_threshold"`
	Delta        float64      `yaml:"delta_tensor_ratio"`
	Devices      string       `yaml:"devices"`
	MaxContext   int          `yaml:"max_context_len"` // -1: the model's
	Strategy     any          `yaml:"decoding_strategy"`
	EncoderInput string       `yaml:"encoder_input_template"`
	DecoderInput string       `yaml:"decoder_input_template"`
	Prompt       string       `yaml:"prompt_template"`

	Queries     int   `yaml:"max_concurrent_queries"` // sequences at once
	Threads     int   `yaml:"cpu_threads"`
	Port        int   `yaml:"http_port"`
	MaxOutput   int   `yaml:"max_output_tokens"` // of an answer that does not say
	Layers      int   `yaml:"cpu_layer_count"`   // layers on the processor; on the target cpu all are
	EncoderCPU  int   `yaml:"encoder_cpu_layer_count"`
	DecoderCPU  int   `yaml:"decoder_cpu_layer_count"`
	HostKVShare int   `yaml:"host_kv_cache_percent"` // share of the layers whose keys and values stay in the host's memory
	HostEmbed   *bool `yaml:"be_host_embeddings"`    // token table in the host's memory

	Speculate   string `yaml:"speculate" words:"none|lookup|draft|medusa|auto"` // how tokens are drafted, see docs/speculation.md
	DraftTokens int    `yaml:"draft_tokens"`                                    // most drafted tokens of a sequence in a step
}

// applyEngine moves what the section says to the specification's own keys.
func (s *Spec) applyEngine() error {
	e := &s.Engine
	types := []struct {
		key  string
		host tensor.DType
		dev  *tensor.DType
		own  *tensor.DType
		name string
	}{{"host_weight_data_type", e.HostWeight, &e.WeightType, &s.Quant, "quant"}, {"host_kv_cache_data_type", e.HostKV, &e.KVType, &s.KVType, "kv_type"}}
	for _, t := range types {
		if !s.Set("engine."+strings.Replace(t.key, "host", "device", 1)) && s.Set("engine."+t.key) {
			*t.dev = t.host
			s.set["engine."+strings.Replace(t.key, "host", "device", 1)] = s.Pos("engine." + t.key)
		}
	}
	for _, move := range []struct {
		engine, own string
		do          func()
	}{
		{"device_weight_data_type", "quant", func() { s.Quant = e.WeightType }},
		{"device_kv_cache_data_type", "kv_type", func() { s.KVType = e.KVType }},
		{"tensor_quant_threshold", "tensor_quant_threshold", func() { s.TensorQuantThreshold = e.Threshold }},
		{"delta_tensor_ratio", "delta_tensor_ratio", func() { s.DeltaTensorRatio = e.Delta }},
		{"devices", "devices", func() { s.Devices = e.Devices }},
		{"max_context_len", "max_context_len", func() { s.MaxContextLen = max(e.MaxContext, 0) }},
		{"decoding_strategy", "decoding_strategy", func() { s.DecodingStrategy = e.Strategy }},
		{"encoder_input_template", "encoder_input_template", func() { s.EncoderInputTemplate = e.EncoderInput }},
		{"decoder_input_template", "chat_template", func() { s.ChatTemplate = e.DecoderInput }}, // over those of the model's files
		{"prompt_template", "chat_template", func() { s.ChatTemplate = e.Prompt }},
	} {
		key := "engine." + move.engine
		if !s.Set(key) {
			continue
		}
		if s.Set(move.own) {
			return errAt(s.Pos(key), "%s: %s is given too; say it once", key, move.own)
		}
		move.do()
		s.set[move.own] = s.Pos(key)
	}
	for _, t := range []struct{ key, value string }{
		{"attn_wq", e.WQ}, {"attn_wk", e.WK}, {"attn_wv", e.WV}, {"attn_wo", e.WO}, {"ffn_w1", e.W1}, {"ffn_w2", e.W2}, {"ffn_w3", e.W3},
	} {
		if t.value != "" {
			s.Types = append(s.Types, Entry{Key: t.key, Val: t.value, Pos: s.Pos("engine.device_weight_data_type." + t.key)})
		}
	}
	return s.checkEngine()
}

// checkEngine refuses numbers that mean nothing.
func (s *Spec) checkEngine() error {
	e := &s.Engine
	for _, v := range []struct {
		key      string
		n, least int
		most     int
	}{
		{"max_concurrent_queries", e.Queries, 1, 4096}, {"cpu_threads", e.Threads, 0, 4096}, {"http_port", e.Port, 0, 65535}, {"max_output_tokens", e.MaxOutput, 1, 1 << 24},
		{"cpu_layer_count", e.Layers, -1, 1 << 16}, {"encoder_cpu_layer_count", e.EncoderCPU, -1, 1 << 16}, {"decoder_cpu_layer_count", e.DecoderCPU, -1, 1 << 16},
		{"host_kv_cache_percent", e.HostKVShare, 0, 100}, {"draft_tokens", e.DraftTokens, 1, 255},
	} {
		if s.Set("engine."+v.key) && (v.n < v.least || v.n > v.most) {
			return errAt(s.Pos("engine."+v.key), "engine.%s: have %d, want a number between %d and %d", v.key, v.n, v.least, v.most)
		}
	}
	_, err := s.Strategy()
	return err
}

// Strategy is decoding_strategy as the runtime reads it: a name with
// parameters, "fsd:alpha=0.4,k=4"; "" for none.
func (s *Spec) Strategy() (string, error) {
	switch v := s.DecodingStrategy.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case map[string]any:
		name, _ := v["name"].(string)
		sep := ":"
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == "name" {
				continue
			}
			number, err := strconv.ParseFloat(fmt.Sprint(v[key]), 64)
			if err != nil {
				return "", errAt(s.Pos("decoding_strategy"), "decoding_strategy.%s: have %v, want a number", key, v[key])
			}
			name += sep + key + "=" + strconv.FormatFloat(number, 'g', -1, 64)
			sep = ","
		}
		if name != "" && !strings.HasPrefix(name, ":") {
			return name, nil
		}
	}
	return "", errAt(s.Pos("decoding_strategy"), "decoding_strategy: want a name, or a mapping with a name and numbers")
}
