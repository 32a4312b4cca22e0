package scheduler

import (
	"sync"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// A snapshot is the engine's counts after the last step, for readers at any
// time.
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

// register makes metrics of the counts.
func (s *snapshot) register(r *metrics.Registry) {
	for _, m := range []struct {
		kind, name, help string
		value            func(engine.Stats) float64
	}{
		{"counter", "iflowc_steps_total", "Steps of the model.", func(e engine.Stats) float64 { return float64(e.Steps) }},
		{"counter", "iflowc_computed_tokens_total", "Tokens that steps computed, of prompts and generated.", func(e engine.Stats) float64 { return float64(e.Tokens) }},
		{"counter", "iflowc_drafted_tokens_total", "Tokens of drafts that were computed.", func(e engine.Stats) float64 { return float64(e.Drafted) }},
		{"counter", "iflowc_accepted_tokens_total", "Tokens of drafts that were accepted.", func(e engine.Stats) float64 { return float64(e.Accepted) }},
		{"counter", "iflowc_preemptions_total", "Times that a sequence lost its state pages to another.", func(e engine.Stats) float64 { return float64(e.Preempted) }},
		{"counter", "iflowc_prefix_queries_tokens_total", "Tokens of prompts that were looked up in the prefix cache.", func(e engine.Stats) float64 { return float64(e.Prompts) }},
		{"counter", "iflowc_prefix_hits_tokens_total", "Tokens of prompts that did not have to be computed.", func(e engine.Stats) float64 { return float64(e.PromptsReused) }},
		{"gauge", "iflowc_kv_pages", "State pages.", func(e engine.Stats) float64 { return float64(e.Pages) }},
		{"gauge", "iflowc_kv_pages_used", "State pages that sequences use.", func(e engine.Stats) float64 { return float64(e.Used) }},
		{"gauge", "iflowc_kv_pages_kept", "State pages that only the prefix cache holds.", func(e engine.Stats) float64 { return float64(e.Kept) }},
		{"gauge", "iflowc_kv_usage_ratio", "Share of the state pages that sequences use.", func(e engine.Stats) float64 { return float64(e.Used) / float64(max(1, e.Pages)) }},
		{"gauge", "iflowc_draft_acceptance_ratio", "Share of drafted tokens that were accepted; 0 without speculation.", func(e engine.Stats) float64 { return float64(e.Accepted) / float64(max(1, e.Drafted)) }},
		{"gauge", "iflowc_gpu_graphs", "Graphs of steps that the GPU keeps.", func(e engine.Stats) float64 { return float64(e.Graphs) }},
		{"counter", "iflowc_gpu_graph_steps_total", "Steps that ran as graphs on the GPU.", func(e engine.Stats) float64 { return float64(e.GraphSteps) }},
		{"gauge", "iflowc_pipeline_stages", "Stages of the pipeline over which the layers are spread; 1: the model is none.", func(e engine.Stats) float64 { return float64(e.Stages) }},
		{"gauge", "iflowc_pipeline_bubble_ratio", "Share of the stages' time in which they had nothing to compute while steps were under way.", func(e engine.Stats) float64 { return e.Bubble() }},
	} {
		r.Func(m.kind, m.name, m.help, func() float64 { return m.value(s.get()) })
	}
}
