package scheduler

import (
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// Metrics are a scheduler's metrics. A nil one measures nothing.
type Metrics struct {
	queue, ttft, itl  *metrics.Histogram
	prompt, generated *metrics.Counter

	engine snapshot
}

// seconds are the bucket bounds of histograms of times.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25, 60}

// NewMetrics registers a scheduler's metrics.
func NewMetrics(r *metrics.Registry) *Metrics {
	m := &Metrics{
		queue:     r.Histogram("iflowc_queue_seconds", "Queueing time of requests, in seconds.", seconds),
		ttft:      r.Histogram("iflowc_time_to_first_token_seconds", "Time to first token (TTFT), queueing included, in seconds.", seconds),
		itl:       r.Histogram("iflowc_inter_token_seconds", "Inter-token latency (ITL) of a sequence, in seconds.", seconds),
		prompt:    r.Counter("iflowc_prompt_tokens_total", "Prompt tokens that were computed; those found in the prefix cache are not among them.", ""),
		generated: r.Counter("iflowc_generated_tokens_total", "Generated tokens.", ""),
	}
	m.engine.register(r)
	return m
}

func (m *Metrics) observeQueue(d time.Duration) {
	if m != nil {
		m.queue.Observe(d.Seconds())
	}
}

func (m *Metrics) observeTTFT(d time.Duration) {
	if m != nil {
		m.ttft.Observe(d.Seconds())
	}
}

func (m *Metrics) observeITL(d time.Duration) {
	if m != nil {
		m.itl.Observe(d.Seconds())
	}
}

func (m *Metrics) observeTokens(prompt, generated int) {
	if m != nil {
		m.prompt.Add(float64(prompt), "")
		m.generated.Add(float64(generated), "")
	}
}

func (m *Metrics) observeEngine(s engine.Stats) {
	if m != nil {
		m.engine.set(s)
	}
}
