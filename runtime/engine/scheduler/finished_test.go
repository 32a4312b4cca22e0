//go:build unix

package scheduler_test

import (
	"context"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// TestFinished checks that the metrics count each answer once, by the reason of its
// end, and measure those that ended by themselves.
func TestFinished(t *testing.T) {
	t.Parallel()
	registry := &metrics.Registry{}
	s, _ := start(t, devicetest.Manifest(), engine.Options{MaxSeqs: 4}, scheduler.Options{Metrics: scheduler.NewMetrics(registry)})
	run := func(prompt []int32, n, limit int, set decode.Settings, during func(*scheduler.Stream, context.CancelFunc)) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		set.Bias = map[int32]float32{devicetest.EOS: -1e9}
		stream, err := s.Generate(ctx, scheduler.Generation{Prompt: prompt, Samplers: samplers(t, n, set, len(prompt)), Max: limit, Logprobs: -1})
		if err != nil {
			t.Fatal(err)
		}
		during(stream, cancel)
		for list := []scheduler.Event{{}}; len(list) > 0 && err == nil; {
			list, err = stream.Next(t.Context())
		}
	}
	nothing := func(*scheduler.Stream, context.CancelFunc) {}
	run([]int32{9, 10}, 2, 3, decode.Settings{}, nothing)                                                                     // length, twice
	run([]int32{9, 10}, 1, 200, decode.Settings{Mask: slow{}}, func(s *scheduler.Stream, _ context.CancelFunc) { s.Stop(0) }) // stop
	run([]int32{9, 10}, 1, 200, decode.Settings{Mask: never{}}, func(_ *scheduler.Stream, leave context.CancelFunc) { leave() })
	run([]int32{devicetest.NaNID}, 1, 3, decode.Settings{}, nothing)
	var text strings.Builder
	registry.WriteTo(&text)
	for _, want := range []string{
		`iflowc_finished_total{finished_reason="length"} 2`, `iflowc_finished_total{finished_reason="stop"} 1`,
		`iflowc_finished_total{finished_reason="abort"} 1`, `iflowc_finished_total{finished_reason="error"} 1`,
		"iflowc_request_seconds_count 2", "iflowc_prefill_seconds_count 2", "iflowc_decode_seconds_count 2",
		"iflowc_request_prompt_tokens_sum 4", `iflowc_request_generated_tokens_bucket{le="10"} `,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("metrics lack %s:\n%s", want, text.String())
		}
	}
}
