package scheduler

import (
	"sync"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// A snapshot holds the engine's counters after the last step, for concurrent readers.
type snapshot struct {
	mu    sync.Mutex
	stats engine.Stats
}

func (s *snapshot) set(v engine.Stats) {
	s.mu.Lock()
	s.stats = v
	s.mu.Unlock()
}

func (s *snapshot) get() engine.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// register registers metrics of the counters.
func (s *snapshot) register(r *metrics.Registry) {
	for _, m := range []struct {
		kind, name, help string
		value            func(engine.Stats) float64
	}{
		{"counter", "iflowc_steps_total", "Engine steps.", func(e engine.Stats) float64 { return float64(e.Steps) }},
		{"counter", "iflowc_computed_tokens_total", "Computed tokens: prompt, generated and drafted.", func(e engine.Stats) float64 { return float64(e.Tokens) }},
		{"counter", "iflowc_drafted_tokens_total", "Drafted tokens that were verified.", func(e engine.Stats) float64 { return float64(e.Drafted) }},
		{"counter", "iflowc_accepted_tokens_total", "Drafted tokens that were accepted.", func(e engine.Stats) float64 { return float64(e.Accepted) }},
		{"counter", "iflowc_preemptions_total", "Preemptions: times that a sequence lost its KV cache pages.", func(e engine.Stats) float64 { return float64(e.Preempted) }},
		{"counter", "iflowc_prefix_queries_tokens_total", "Prompt tokens looked up in the prefix cache.", func(e engine.Stats) float64 { return float64(e.Prompts) }},
		{"counter", "iflowc_prefix_hits_tokens_total", "Prompt tokens found in the prefix cache.", func(e engine.Stats) float64 { return float64(e.PromptsReused) }},
		{"gauge", "iflowc_kv_pages", "KV cache pages.", func(e engine.Stats) float64 { return float64(e.Pages) }},
		{"gauge", "iflowc_kv_pages_used", "KV cache pages that sequences use.", func(e engine.Stats) float64 { return float64(e.Used) }},
		{"gauge", "iflowc_kv_pages_cached", "KV cache pages that only the prefix cache holds.", func(e engine.Stats) float64 { return float64(e.Kept) }},
		{"gauge", "iflowc_state_cells", "Cells of fixed-size states; 0: the model has none.", func(e engine.Stats) float64 { return float64(e.Cells) }},
		{"gauge", "iflowc_state_cells_used", "Cells of fixed-size states that sequences use.", func(e engine.Stats) float64 { return float64(e.CellsUsed) }},
		{"gauge", "iflowc_state_cells_cached", "Cells of fixed-size states that only the prefix cache holds.", func(e engine.Stats) float64 { return float64(e.CellsKept) }},
		{"gauge", "iflowc_kv_usage_ratio", "Fraction of the KV cache pages that sequences use.", func(e engine.Stats) float64 { return float64(e.Used) / float64(max(1, e.Pages)) }},
		{"gauge", "iflowc_draft_acceptance_ratio", "Fraction of the drafted tokens that were accepted; 0 without speculative decoding.", func(e engine.Stats) float64 { return float64(e.Accepted) / float64(max(1, e.Drafted)) }},
		{"gauge", "iflowc_lora_adapters", "Loaded LoRA adapters, and unloaded ones that requests still use.", func(e engine.Stats) float64 { return float64(e.Adapters) }},
		{"gauge", "iflowc_lora_bytes", "Memory of the matrices of LoRA adapters, in bytes.", func(e engine.Stats) float64 { return float64(e.AdapterBytes) }},
		{"gauge", "iflowc_gpu_graphs", "CUDA graphs of steps that the GPU holds.", func(e engine.Stats) float64 { return float64(e.Graphs) }},
		{"counter", "iflowc_gpu_graph_steps_total", "Steps that ran as CUDA graphs.", func(e engine.Stats) float64 { return float64(e.GraphSteps) }},
		{"gauge", "iflowc_pipeline_stages", "Pipeline parallel stages; 1 without pipeline parallelism.", func(e engine.Stats) float64 { return float64(e.Stages) }},
		{"gauge", "iflowc_pipeline_bubble_ratio", "Pipeline bubble: fraction of the stages' time in which they were idle while steps were in flight.", func(e engine.Stats) float64 { return e.Bubble() }},
	} {
		r.Func(m.kind, m.name, m.help, func() float64 { return m.value(s.get()) })
	}
}
