//go:build unix

package engine

import (
	"math"
	"testing"
	"time"
)

// TestBubble checks the idle time of stages, by the time that each measured, or by the
// number of steps in flight.
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
	move := func(seconds, inFlight int) { // advance the time, then set the number of steps in flight
		at = at.Add(time.Duration(seconds) * time.Second)
		f.count(at)
		all := append(f.idle, f.inFlight...)
		f.inFlight, f.idle = all[:inFlight:inFlight], all[inFlight:]
	}
	move(0, 1)
	move(2, 2) // 2 s with one step
	move(3, 1) // 3 s with two
	move(1, 0) // 1 s with one
	move(9, 0) // idle time is not counted
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
