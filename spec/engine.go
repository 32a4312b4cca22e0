package spec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// An Engine holds the run-time settings of a model spec under the names of
// Inferflow's engine configuration. A key that is also a key of the model spec
// has the same meaning, except that a template given here replaces that of the
// model's files. Command-line flags take precedence over both.
type Engine struct {
	WeightType   tensor.DType `yaml:"device_weight_data_type"`         // same as quant
	WQ           string       `yaml:"device_weight_data_type.attn_wq"` // type of the query projections; same as the entry attn_wq of types
	WK           string       `yaml:"device_weight_data_type.attn_wk"` // type of the key projections; same as the entry attn_wk of types
	WV           string       `yaml:"device_weight_data_type.attn_wv"` // type of the value projections; same as the entry attn_wv of types
	WO           string       `yaml:"device_weight_data_type.attn_wo"` // type of the output projections of attention; same as the entry attn_wo of types
	W1           string       `yaml:"device_weight_data_type.ffn_w1"`  // type of the first FFN matrices (the gate, in gated FFNs); same as the entry ffn_w1 of types
	W2           string       `yaml:"device_weight_data_type.ffn_w2"`  // type of the last FFN matrices (down); same as the entry ffn_w2 of types
	W3           string       `yaml:"device_weight_data_type.ffn_w3"`  // type of the up matrices of gated FFNs; same as the entry ffn_w3 of types
	KVType       tensor.DType `yaml:"device_kv_cache_data_type"`       // same as kv_type
	HostWeight   tensor.DType `yaml:"host_weight_data_type"`           // same as device_weight_data_type, which overrides it
	HostKV       tensor.DType `yaml:"host_kv_cache_data_type"`         // same as device_kv_cache_data_type, which overrides it
	Threshold    int          `yaml:"tensor_quant_threshold"`          // same as the key outside engine
	Delta        float64      `yaml:"delta_tensor_ratio"`              // same as the key outside engine
	Devices      string       `yaml:"devices"`                         // same as the key outside engine
	MaxContext   int          `yaml:"max_context_len"`                 // same as the key outside engine; -1: the default
	Strategy     any          `yaml:"decoding_strategy"`               // same as the key outside engine
	EncoderInput string       `yaml:"encoder_input_template"`          // same as the key outside engine
	DecoderInput string       `yaml:"decoder_input_template"`          // same as chat_template outside engine
	Prompt       string       `yaml:"prompt_template"`                 // same as chat_template outside engine

	Queries     int   `yaml:"max_concurrent_queries"`  // sequences that run at once, `--parallel`; default: 16
	Threads     int   `yaml:"cpu_threads"`             // worker threads, `--threads`; 0: one per physical core
	Port        int   `yaml:"http_port"`               // port of the service, `--port`; default: 8080
	MaxOutput   int   `yaml:"max_output_tokens"`       // maximum tokens of a response if the request sets no limit, `--max-tokens`; default: up to the end of the context
	Layers      int   `yaml:"cpu_layer_count"`         // on GPU targets, if devices is not set: number of layers, counted from the first, that run on the CPU
	EncoderCPU  int   `yaml:"encoder_cpu_layer_count"` // recorded in `BIN info` only: an encoder runs on one device
	DecoderCPU  int   `yaml:"decoder_cpu_layer_count"` // same as cpu_layer_count, which it overrides
	HostKVShare int   `yaml:"host_kv_cache_percent"`   // on GPU targets: percentage of layers, counted from the last, that keep their KV cache in host memory; default: 0
	HostEmbed   *bool `yaml:"be_host_embeddings"`      // on GPU targets: keep the embedding table in host memory; default: false

	Speculate   string `yaml:"speculate" words:"none|lookup|draft|medusa|auto"` // default drafting method, see [speculation](../speculation.md)
	DraftTokens int    `yaml:"draft_tokens"`                                    // maximum drafted tokens per sequence and step; default: 15
}

// applyEngine copies the settings of the section to the model spec's own keys.
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
		{"decoder_input_template", "chat_template", func() { s.ChatTemplate = e.DecoderInput }}, // replaces that of the model's files
		{"prompt_template", "chat_template", func() { s.ChatTemplate = e.Prompt }},
	} {
		key := "engine." + move.engine
		if !s.Set(key) {
			continue
		}
		if s.Set(move.own) {
			return errAt(s.Pos(key), "%s: %s is given too; remove one of them", key, move.own)
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

// checkEngine returns an error for a number outside its range.
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

// Strategy returns decoding_strategy in the syntax of the runtime: a name with
// parameters, such as "fsd:alpha=0.4,k=4", or "" if there is none.
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
