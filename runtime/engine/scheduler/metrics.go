package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// Metrics are a scheduler's metrics. A nil one measures nothing.
type Metrics struct {
	queue, ttft, itl  *metrics.Histogram
	prompt, generated *metrics.Counter

	finished               *metrics.Counter
	whole, prefill, decode *metrics.Histogram // times of requests
	prompts, answers       *metrics.Histogram // tokens of requests

	engine snapshot
}

// seconds are the bucket bounds of histograms of times.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25, 60}

// longer are the bounds for whole requests, tokens those of numbers of tokens.
var (
	longer = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25, 60, 120, 300, 600}
	tokens = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000}
)

// NewMetrics registers a scheduler's metrics.
func NewMetrics(r *metrics.Registry) *Metrics {
	m := &Metrics{
		queue:     r.Histogram("iflowc_queue_seconds", "Queueing time of requests, in seconds.", seconds),
		ttft:      r.Histogram("iflowc_time_to_first_token_seconds", "Time to first token (TTFT), queueing included, in seconds.", seconds),
		itl:       r.Histogram("iflowc_inter_token_seconds", "Inter-token latency (ITL) of a sequence, in seconds.", seconds),
		prompt:    r.Counter("iflowc_prompt_tokens_total", "Prompt tokens that were computed; those found in the prefix cache are not among them.", ""),
		generated: r.Counter("iflowc_generated_tokens_total", "Generated tokens.", ""),

		finished: r.Counter("iflowc_finished_total", "Ended answers, by reason: stop, length, abort (the client left, or --timeout) or error.", "finished_reason"),
		whole:    r.Histogram("iflowc_request_seconds", "Time from the arrival of a request to its last token, in seconds.", longer),
		prefill:  r.Histogram("iflowc_prefill_seconds", "Time from the start of a request to its first token, in seconds.", longer),
		decode:   r.Histogram("iflowc_decode_seconds", "Time from the first to the last token of a request, in seconds.", longer),
		prompts:  r.Histogram("iflowc_request_prompt_tokens", "Prompt tokens of a request, those found in the prefix cache included.", tokens),
		answers:  r.Histogram("iflowc_request_generated_tokens", "Generated tokens of a request.", tokens),
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

func (m *Metrics) observeFinish(reason string, n int) {
	if m != nil && n > 0 {
		m.finished.Add(float64(n), reason)
	}
}

// A span is the course of a request.
type span struct {
	arrived, begun, first time.Time // of the request, its prefill and its first token
	prompt, generated     int       // tokens
}

// observeSpan measures a request that ends now with its last token.
func (m *Metrics) observeSpan(s *span) {
	if m == nil {
		return
	}
	now := time.Now()
	m.whole.Observe(now.Sub(s.arrived).Seconds())
	m.prefill.Observe(s.first.Sub(s.begun).Seconds())
	m.decode.Observe(now.Sub(s.first).Seconds())
	m.prompts.Observe(float64(s.prompt))
	m.answers.Observe(float64(s.generated))
}

// finishOf returns the reason for the metrics of an answer that an error ends.
func finishOf(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "abort"
	}
	return "error"
}
