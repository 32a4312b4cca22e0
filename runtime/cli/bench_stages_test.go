//go:build unix

package cli

import (
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
)

func TestStagesSince(t *testing.T) {
	t.Parallel()
	begun := engine.Stats{Stages: 2, Active: time.Second, Worked: time.Second, Busy: []time.Duration{time.Second, 0}}
	now := engine.Stats{Stages: 2, Active: 5 * time.Second, Worked: 7 * time.Second, Busy: []time.Duration{3 * time.Second, 4 * time.Second}}
	if got, want := stagesSince(begun, now).String(), "bubble 25 %, busy 50 %, 100 %"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	begun.Busy, now.Busy = nil, nil
	if got := stagesSince(begun, now).String(); got != "bubble 25 %" {
		t.Errorf("%q without the stages' clocks", got)
	}
	if stagesSince(engine.Stats{Stages: 1}, engine.Stats{Stages: 1}) != nil {
		t.Error("a model that is no pipeline has stages")
	}
}
