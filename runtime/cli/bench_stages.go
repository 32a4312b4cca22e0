//go:build unix

package cli

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/runtime/engine"
)

// stages is the utilization of the pipeline stages during steps.
type stages struct {
	Bubble float64   `json:"bubble"`         // fraction of their time in which stages were idle
	Busy   []float64 `json:"busy,omitempty"` // fraction of the time in which each computed, if known
}

// stagesSince compares an engine's counts with earlier ones; nil: the model is
// not a pipeline.
func stagesSince(begun, now engine.Stats) *stages {
	if now.Stages < 2 {
		return nil
	}
	now.Active -= begun.Active
	now.Worked -= begun.Worked
	s := &stages{Bubble: now.Bubble()}
	for i, d := range now.Busy {
		if i < len(begun.Busy) {
			d -= begun.Busy[i]
		}
		s.Busy = append(s.Busy, float64(d)/float64(max(1, now.Active)))
	}
	return s
}

// String formats it for the table.
func (s *stages) String() string {
	text := fmt.Sprintf("bubble %.0f %%", s.Bubble*100)
	if len(s.Busy) == 0 {
		return text
	}
	var busy []string
	for _, b := range s.Busy {
		busy = append(busy, fmt.Sprintf("%.0f %%", b*100))
	}
	return text + ", busy " + strings.Join(busy, ", ")
}
