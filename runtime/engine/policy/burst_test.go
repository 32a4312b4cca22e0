package policy

import (
	"testing"
	"time"
)

// TestBarrier checks which requests hold back their last prompt token: those of a
// burst, but not for a prompt that is much longer, less urgent or without pages, not if
// many requests decode, and not after being overtaken too often.
func TestBarrier(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(in *Input)
		first  int // tokens of the first request, which has 2 left, or 100
	}{
		"burst":                    {func(*Input) {}, 1},
		"its prompt comes first":   {func(in *Input) { in.Requests[0].Done = 0 }, 99},
		"few generate":             {func(in *Input) { decode(in, 2) }, 1},
		"many generate":            {func(in *Input) { decode(in, 8) }, 2},
		"a step computes all":      {func(in *Input) { in.Requests = in.Requests[:2] }, 2},
		"long burst":               {func(in *Input) { in.Requests = append(in.Requests, make([]Request, 40)...); fill(in) }, 2},
		"longer prompts":           {func(in *Input) { in.Requests[0].Length, in.Requests[0].Done = 40, 38 }, 2},
		"less urgent prompts":      {func(in *Input) { in.Requests[0].Priority = -1 }, 2},
		"few pages":                {func(in *Input) { in.Limits.Pages = 10 }, 2},
		"overtaken":                {func(in *Input) { in.Requests[0].Waited = maxOvertaken }, 2},
		"a step is under way":      {func(in *Input) { in.Requests[5].Blocked = true }, 2},
		"no objective":             {func(in *Input) { in.Objective.StepTime = 0 }, 2},
		"the rule is switched off": {func(in *Input) { in.Objective.Without = PrefillBarrier }, 2},
	} {
		in := measured(12)
		in.Limits = Limits{Tokens: 512, Rows: 64, Requests: 64, Pages: 256, PageRows: 64}
		in.Objective.StepTime = 11 * time.Millisecond
		fill(in)
		in.Requests[0].Done, in.Requests[0].Pages = 98, 2
		c.change(in)
		var b Batch
		Next(in, &b)
		got := 0
		for _, p := range b.Parts {
			if p.Request == 0 {
				got = p.Tokens
			}
		}
		if got != c.first {
			t.Errorf("%s: the first request gets %d tokens, expected %d: %+v", name, got, c.first, b.Parts)
		}
	}
}

// fill sets a prompt of 100 pending tokens for all requests.
func fill(in *Input) {
	for i := range in.Requests {
		if r := &in.Requests[i]; r.Length == 0 {
			r.Length, r.RowFrom, r.Rows = 100, 99, 1
		}
	}
}

// decode makes the last n requests decode.
func decode(in *Input, n int) {
	for i := len(in.Requests) - n; i < len(in.Requests); i++ {
		r := &in.Requests[i]
		r.Done, r.Pages, r.Decoding = r.Length-1, 2, true
	}
}
