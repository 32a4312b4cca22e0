//go:build unix

package server_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// A knower drafts the fake model's greedy tokens, except for the third.
type knower struct{}

func (knower) Observe([]int32) {}

func (knower) Propose(history []int32, room speculate.Room) speculate.Draft {
	d := devicetest.Greedy(history, room.Nodes, salt)
	if len(d) > 2 {
		d[2] = 8
	}
	return speculate.Draft{Tree: speculate.Path(d...)}
}

// draftsGreedy drafts only for requests that ask for it.
func draftsGreedy(method string) (func() speculate.Drafter, error) {
	switch method {
	case "", "none":
		return nil, nil
	case "greedy":
		return func() speculate.Drafter { return knower{} }, nil
	}
	return nil, fmt.Errorf("%q is not known", method)
}

// TestDrafts checks that answers are the same with and without drafts, greedy and
// sampled, and that usage counts accepted tokens.
func TestDrafts(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, e *engine.Options) {
		e.Draft = 6
		c.Drafter = func(method string) (func() speculate.Drafter, error) {
			switch method {
			case "none":
				return nil, nil
			case "":
				return func() speculate.Drafter { return knower{} }, nil
			}
			return nil, fmt.Errorf("%q is not known", method)
		}
	})
	for _, request := range []string{
		`"temperature":0,"max_tokens":30`,
		`"temperature":0,"max_tokens":31,"logprobs":2`,
		`"temperature":1,"seed":5,"max_tokens":40,"n":3`,
		`"temperature":0,"max_tokens":60,"stop":"e","frequency_penalty":1`,
	} {
		var plain, drafted completion
		s.post(t, "/v1/completions", `{"prompt":"Hello","speculate":"none",`+request+`}`, &plain)
		s.post(t, "/v1/completions", `{"prompt":"Hello",`+request+`}`, &drafted)
		if len(plain.Choices) == 0 || !reflect.DeepEqual(plain.Choices, drafted.Choices) {
			t.Errorf("%s: %+v, with drafts %+v", request, plain.Choices, drafted.Choices)
		}
		if u, d := drafted.Usage, drafted.Usage.Drafts; d == nil || plain.Usage.Drafts != nil || u.Completion != plain.Usage.Completion {
			t.Errorf("%s: usage %+v, %+v without drafts", request, u, plain.Usage)
		} else if d.Rejected == 0 || request[14] == '0' && d.Accepted == 0 {
			t.Errorf("%s: %+v", request, d)
		}
	}
	var c completion
	if status, _ := s.post(t, "/v1/completions", `{"prompt":"Hello","speculate":"magic"}`, &c); status != 400 || *c.Error.Param != "speculate" {
		t.Errorf("an unknown method: %d %+v", status, c.Error)
	}
}
