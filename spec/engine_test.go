package spec

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
)

// TestEngineSection checks that the keys of the section equal the model spec's own keys.
func TestEngineSection(t *testing.T) {
	t.Parallel()
	s, err := Parse("a.yaml", []byte(`
iflow: 1
name: a
engine:
  device_weight_data_type: Q4_B64
  device_weight_data_type.attn_wv: Q8
  host_kv_cache_data_type: F16
  max_concurrent_queries: 6
  cpu_threads: 2
  max_context_len: 256
  decoding_strategy: {name: fsd, k: 4, alpha: 0.4}
  prompt_template: "{bos}{query}"
  devices: "0"
  host_kv_cache_percent: 50
  be_host_embeddings: true
  http_port: 9000
`), map[string]any{"model_type": "llama"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Quant != tensor.Q4B64 || s.KVType != tensor.F16 || s.MaxContextLen != 256 || s.ChatTemplate != "{bos}{query}" || s.Devices != "0" ||
		len(s.Types) != 1 || s.Types[0].Key != "attn_wv" || s.Engine.Queries != 6 || s.Engine.Threads != 2 || s.Engine.HostKVShare != 50 || !*s.Engine.HostEmbed {
		t.Errorf("%+v", s)
	}
	if name, err := s.Strategy(); err != nil || name != "fsd:alpha=0.4,k=4" {
		t.Errorf("strategy %q, %v", name, err)
	}
	for text, want := range map[string]string{
		"quant: q4_b64\nengine: {device_weight_data_type: q8}": "remove one of them",
		"engine: {max_concurrent_queries: 0}":                  "between 1 and 4096",
		"engine: {host_kv_cache_percent: 101}":                 "between 0 and 100",
		"engine: {threads: 4}":                                 "unknown key",
		"engine: {decoding_strategy: {k: 4}}":                  "want a name",
		"engine: {decoding_strategy: {name: fsd, k: many}}":    "want a number",
		"engine: {device_weight_data_type.attn_wz: q8}":        "unknown key",
		"engine: {devices: \"0;;\"}":                           "devices",
	} {
		_, err := Parse("a.yaml", []byte("iflow: 1\nname: a\n"+text+"\n"), map[string]any{"model_type": "llama"}, Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", text, err, want)
		}
	}
	if s, err = Parse("a.yaml", []byte("iflow: 1\nname: a\nengine: {device_weight_data_type: q8}\n"), map[string]any{"model_type": "llama"}, Options{Quant: "f16"}); err != nil || s.Quant != tensor.F16 {
		t.Errorf("the flag does not win: %v %v", s, err)
	}
}
