//go:build unix

package engine

import (
	"math"
	"testing"
	"time"
)

// TestBubble counts stages that stand still: by their own clocks where they have
// some, else by the steps under way.
func TestBubble(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	f := pipeline{idle: []*inFlightStep{{}, {}}}
	bubble := func(busy ...time.Duration) float64 {
		return Stats{Stages: f.stages(), Active: f.active, Worked: f.worked(busy)}.Bubble()
	}
	if b := bubble(); b != 0 {
		t.Errorf("nothing was computed: bubble %v", b)
	}
	move := func(seconds, inFlight int) { // time passes, then so many are under way
		at = at.Add(time.Duration(seconds) * time.Second)
		f.count(at)
		all := append(f.idle, f.inFlight...)
		f.inFlight, f.idle = all[:inFlight:inFlight], all[inFlight:]
	}
	move(0, 1)
	move(2, 2) // two seconds with one step
	move(3, 1) // three with two
	move(1, 0) // one with one
	move(9, 0) // nothing to do does not count
	if b := bubble(); math.Abs(b-3.0/12) > 1e-9 {
		t.Errorf("bubble %v, expected 3 of 2·6 seconds", b)
	}
	if b := bubble(6*time.Second, 3*time.Second); math.Abs(b-3.0/12) > 1e-9 {
		t.Errorf("bubble %v by the stages' clocks, expected 3 of 2·6 seconds", b)
	}
	if b := (Stats{Stages: 1, Active: time.Second}).Bubble(); b != 0 {
		t.Errorf("bubble %v of a model that is no pipeline", b)
	}
}
