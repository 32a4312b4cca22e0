//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseShape(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Shape{
		"": {}, "20ms,1Gbit,1%": {Delay: 20 * time.Millisecond, Bandwidth: 125e6, Loss: 0.01}, "100%": {Loss: 1}, "0s,100Mbit": {Bandwidth: 12.5e6}, "1.5ms": {Delay: 1500 * time.Microsecond},
	} {
		if got, err := ParseShape(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; expected %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"1ms,2ms": "second delay", "1Gbit,1Gbit": "second bandwidth", "1%,1%": "second loss", "101%": "0% to 100%", "NaN%": "0% to 100%", "-1ms": "expected a delay", "1": "expected a delay",
		"1h": "expected a delay", "0Gbit": "expected a delay", "1Gb": "expected a delay",
	} {
		if got, err := ParseShape(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; expected %s", text, got, err, want)
		}
	}
}

// TestLane: packets of 1000 bytes on a line of 100 kB/s leave it 10 ms after one another
// and arrive 2 ms later. Those that would wait for more than queueTime are dropped, and
// the line is free again after a pause.
func TestLane(t *testing.T) {
	t.Parallel()
	var n lane
	data, s, now := make([]byte, 1000), &Shape{Bandwidth: 1e5, Delay: 2 * time.Millisecond}, time.Now()
	for range 10 {
		n.put(now, data, s)
	}
	n.put(now.Add(time.Second), data, s)
	n.put(now, data, &Shape{Down: true})
	n.put(now, data, &Shape{Loss: 1})
	var due []time.Duration
	for _, p := range n.ahead {
		due = append(due, p.due.Sub(now))
	}
	const ms = time.Millisecond
	want := []time.Duration{12 * ms, 22 * ms, 32 * ms, 42 * ms, 52 * ms, 62 * ms, 1012 * ms}
	if !slices.Equal(due, want) {
		t.Errorf("packets arrive after %v, expected %v", due, want)
	}
}
