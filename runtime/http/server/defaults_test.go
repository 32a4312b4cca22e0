//go:build unix

package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
)

// completing starts a service with other defaults, and returns the function that asks it
// for a completion.
func completing(t *testing.T, edit func(d *server.Defaults)) func(keys string) (text, finish string) {
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		if edit != nil {
			edit(&c.Defaults)
		}
	})
	return func(keys string) (string, string) {
		var a struct {
			Choices []struct {
				Text   string
				Finish string `json:"finish_reason"`
			}
		}
		if status, _ := s.post(t, "/v1/completions", `{"prompt":[12,36,3],"seed":3,"ignore_eos":true`+keys+`}`, &a); status != 200 {
			t.Fatalf("%s: status %d", keys, status)
		}
		return a.Choices[0].Text, a.Choices[0].Finish
	}
}

// TestDefaults: requests that set nothing have the service's settings, and each key of a
// request replaces one of them.
func TestDefaults(t *testing.T) {
	t.Parallel()
	const more = `,"max_tokens":30`
	plain := completing(t, nil)
	greedy, _ := plain(`,"temperature":0` + more)
	drawn, _ := plain(more)
	if greedy == drawn {
		t.Fatal("the seed draws the most probable tokens")
	}
	cut := completing(t, func(d *server.Defaults) { d.TopK = 1 })
	if got, _ := cut(more); got != greedy {
		t.Errorf("top-k 1 by default: %q, expected %q", got, greedy)
	}
	if got, _ := cut(`,"top_k":0` + more); got != drawn {
		t.Errorf("top_k 0 in the request: %q, expected %q", got, drawn)
	}
	rules := completing(t, func(d *server.Defaults) {
		d.Temperature, d.Penalty, d.Rules.NoRepeat, d.Rules.Suppress, d.Rules.ForcedEOS = 0, 1.5, 1, []int32{20, 21, 22}, []int32{40}
	})
	want, _ := plain(`,"temperature":0,"repetition_penalty":1.5,"no_repeat_ngram_size":1,"logit_bias":{"20":-100,"21":-100,"22":-100}` + more)
	got, _ := rules(more)
	if n := len(want) - 1; !strings.HasPrefix(got, want[:n]) || got == greedy {
		t.Errorf("rules by default: %q, expected %q", got, want)
	}
	if got, _ := rules(`,"repetition_penalty":1,"no_repeat_ngram_size":0` + more); slices.Equal([]byte(got), []byte(want)) {
		t.Error("the request's rules did not replace the service's")
	}
	ends := completing(t, func(d *server.Defaults) { d.Temperature, d.MaxLength, d.Stop = 0, 10, []string{greedy[4:5]} })
	if got, finish := ends(more); got != greedy[:4] && !strings.Contains(greedy[:4], greedy[4:5]) || finish != "stop" {
		t.Errorf("a text that ends answers: %q %s of %q", got, finish, greedy)
	}
	short := completing(t, func(d *server.Defaults) { d.Temperature, d.MaxLength = 0, 10 })
	if got, finish := short(`,"stream":false`); len(got) > len(greedy) || finish != "length" {
		t.Errorf("a maximum length of 10: %q %s", got, finish)
	}
}

// TestOwnPenalty checks that a request that says something of sampling has no penalty that
// it does not name.
func TestOwnPenalty(t *testing.T) {
	t.Parallel()
	const more = `,"max_tokens":30`
	drawn, _ := completing(t, nil)(more)
	own := completing(t, func(d *server.Defaults) { d.OwnPenalty, d.Penalty, d.PenaltyWindow = true, 1.5, 64 })
	if got, _ := own(more); got == drawn {
		t.Errorf("the penalty of requests that say nothing has no effect: %q", got)
	}
	for _, keys := range []string{`,"temperature":1`, `,"top_k":0`, `,"repetition_penalty":1`} {
		if got, _ := own(keys + more); got != drawn {
			t.Errorf("%s: %q, expected %q without the penalty", keys, got, drawn)
		}
	}
}
