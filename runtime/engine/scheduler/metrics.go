package scheduler

import (
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// Metrics are what a scheduler measures. A nil one measures nothing.
type Metrics struct {
	queue, first, between *metrics.Histogram
	prompt, generated     *metrics.Counter

	engine snapshot
}

// seconds are the bounds of histograms of times.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25, 60}

// NewMetrics registers a scheduler's metrics.
func NewMetrics(r *metrics.Registry) *Metrics {
	m := &Metrics{
		queue:     r.Histogram("iflowc_queue_seconds", "Time that requests waited for their turn.", seconds),
		first:     r.Histogram("iflowc_time_to_first_token_seconds", "Time from a request's arrival to its first token.", seconds),
		between:   r.Histogram("iflowc_inter_token_seconds", "Time between two tokens of a sequence.", seconds),
		prompt:    r.Counter("iflowc_prompt_tokens_total", "Tokens of prompts.", ""),
		generated: r.Counter("iflowc_generated_tokens_total", "Tokens generated.", ""),
	}
	m.engine.register(r)
	return m
}

func (m *Metrics) observeQueue(d time.Duration) {
	if m != nil {
		m.queue.Observe(d.Seconds())
	}
}

func (m *Metrics) observeFirst(d time.Duration, prompt int) {
	if m != nil {
		m.first.Observe(d.Seconds())
		m.prompt.Add(float64(prompt), "")
	}
}

func (m *Metrics) observeBetween(d time.Duration) {
	if m != nil {
		m.between.Observe(d.Seconds())
	}
}

func (m *Metrics) observeTokens(n int) {
	if m != nil {
		m.generated.Add(float64(n), "")
	}
}

func (m *Metrics) observeEngine(s engine.Stats) {
	if m != nil {
		m.engine.set(s)
	}
}
