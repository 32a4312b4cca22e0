//go:build unix

package server

import (
	"testing"

	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// TestOllamaWindow checks the default of repeat_last_n beside penalties: Ollama's, unless
// the operator or the model has one.
func TestOllamaWindow(t *testing.T) {
	t.Parallel()
	own := Defaults{Settings: decode.Settings{Options: decode.Options{PenaltyWindow: 32}}}
	for i, c := range []struct {
		options  ollamaOptions
		defaults Defaults
		want     int // -2: left to the defaults
	}{
		{ollamaOptions{Repeat: new(1.1)}, Defaults{}, 64},
		{ollamaOptions{Frequency: 1}, Defaults{}, 64},
		{ollamaOptions{Presence: 1}, Defaults{}, 64},
		{ollamaOptions{Repeat: new(1.1), RepeatLast: new(-1)}, Defaults{}, -1},
		{ollamaOptions{}, Defaults{}, -2},
		{ollamaOptions{Repeat: new(1.1)}, own, -2},
	} {
		set := c.options.sampling(&c.defaults)
		if got := or(set.RepeatLastN, -2); got != c.want {
			t.Errorf("%d: %d, want %d", i, got, c.want)
		}
	}
}
