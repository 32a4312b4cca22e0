//go:build unix

package scheduler_test

import (
	"slices"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// TestDecided checks that the trace contains the admission and the end of every job
// once, with the reason.
func TestDecided(t *testing.T) {
	t.Parallel()
	heard := make(chan string, 100)
	s, _ := start(t, devicetest.Manifest(), engine.Options{MaxSeqs: 1}, scheduler.Options{
		Decided: func(what string, args map[string]any) {
			if err, ok := args["error"]; ok {
				what += ": " + err.(string)
			}
			heard <- what
		},
	})
	for _, prompt := range [][]int32{{9, 10}, {devicetest.NaNID}} { // the second prompt's row contains a NaN
		stream, err := s.Generate(t.Context(), scheduler.Generation{Prompt: prompt, Samplers: samplers(t, 1, decode.Settings{}, len(prompt)), Max: 3, Logprobs: -1})
		if err != nil {
			t.Fatal(err)
		}
		for list := []scheduler.Event{{}}; len(list) > 0 && err == nil; {
			list, err = stream.Next(t.Context())
		}
	}
	var got []string
	for range 4 {
		got = append(got, <-heard)
	}
	if want := []string{"admitted", "finished", "admitted", "ended: " + decode.ErrNaN.Error()}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
