//go:build unix

package server

import (
	"testing"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/text/chat"
)

// calling is a reader that decodes every token as a tool call.
type calling struct{ n int }

func (c *calling) Push(int32) chat.Delta {
	c.n++
	return chat.Delta{Calls: []chat.CallDelta{{Index: c.n - 1, ID: "x", Name: "f", Arguments: "{}"}}}
}
func (c *calling) Flush() chat.Delta { return chat.Delta{} }

// TestParallelCalls checks that an answer without parallel_tool_calls ends before the
// second call.
func TestParallelCalls(t *testing.T) {
	t.Parallel()
	for _, single := range []bool{false, true} {
		c := choice{reader: &calling{}, single: single}
		var p piece
		for range 3 {
			if c.finish == "" {
				c.add(&p, scheduler.Event{Token: 5})
			}
		}
		if c.finish == "" {
			c.add(&p, scheduler.Event{Token: -1, Finish: scheduler.FinishStop})
		}
		want := 3
		if single {
			want = 1
		}
		if len(p.delta.Calls) != want || c.finish != "tool_calls" {
			t.Errorf("single %v: %d calls, finish %q", single, len(p.delta.Calls), c.finish)
		}
	}
}
