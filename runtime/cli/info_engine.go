//go:build unix

package cli

import (
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// engineLines returns the engine settings of the model spec as text.
func engineLines(e *manifest.Engine) (lines []string) {
	for _, v := range []struct {
		name string
		n    int
		note string
	}{
		{"max_concurrent_queries", e.Sequences, ""}, {"cpu_threads", e.Threads, ""}, {"http_port", e.Port, ""}, {"max_output_tokens", e.MaxOutput, ""},
		{"cpu_layer_count", e.Layers, hostNote}, {"encoder_cpu_layer_count", e.EncoderLayers, hostNote}, {"decoder_cpu_layer_count", e.DecoderLayers, hostNote},
		{"host_kv_cache_percent", e.HostKVPercent, hostNote}, {"draft_tokens", e.DraftTokens, ""},
	} {
		if v.n != 0 {
			lines = append(lines, fmt.Sprintf("%s %d%s", v.name, v.n, v.note))
		}
	}
	if e.HostEmbeddings != nil {
		lines = append(lines, fmt.Sprintf("be_host_embeddings %v%s", *e.HostEmbeddings, hostNote))
	}
	if e.Strategy != "" {
		lines = append(lines, "decoding_strategy "+e.Strategy)
	}
	if e.Speculate != "" {
		lines = append(lines, "speculate "+e.Speculate)
	}
	if e.Devices != "" {
		lines = append(lines, "devices "+e.Devices)
	}
	return lines
}

// templateLines returns the starts of the templates.
func templateLines(m *manifest.Manifest) (lines []string) {
	for _, t := range []struct{ name, text string }{{"template", m.Template}, {"encoder_input_template", m.EncoderTemplate}, {"template of tools", m.ToolTemplate}} {
		if t.text != "" {
			lines = append(lines, fmt.Sprintf("%s %.100q", t.name, t.text))
		}
	}
	return lines
}

// hostNote describes the effect of host memory settings for this target.
const hostNote = " (on the CPU everything is in host memory)"
