//go:build unix

package engine

import (
	"testing"
	"time"
)

// TestWatch: drafts that lose rest, for longer each time, and those that gain go
// on; long breaks between steps and steps with prompts do not count.
func TestWatch(t *testing.T) {
	for _, c := range []struct {
		name    string
		seqs    int
		plain   time.Duration
		drafted time.Duration
		accepts int64 // of all sequences, a step
		most    float64
		least   float64 // share of steps with drafts
	}{
		{"never right", 1, 10, 11, 0, 0.12, 0.001},
		{"half as fast, a token more", 1, 10, 21, 1, 0.12, 0.001},
		{"a token more for little", 1, 10, 12, 1, 1, 0.95},
		{"eight, of which one gains", 8, 10, 12, 1, 0.12, 0.001},
		{"eight, of which four gain", 8, 10, 12, 4, 1, 0.95},
		{"even", 3, 10, 10, 0, 1, 0.95},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := time.Unix(1, 0)
			w := &watch{now: func() time.Time { return clock }}
			accepted, drafts := int64(0), 0
			const steps = 4000
			for i := range steps {
				parts := make([]part, c.seqs)
				for j := range parts {
					parts[j].n = 1
				}
				draft := i >= watchPlain && w.open(c.seqs)
				if draft {
					parts[0].drafted, drafts = 2, drafts+1
				}
				if i%500 == 499 {
					parts[0].n = 7 // a prompt
				}
				w.start()
				w.took(parts, accepted)
				step := c.plain
				if draft {
					step, accepted = c.drafted, accepted+c.accepts
				}
				if i%300 == 299 {
					step = 1e6 // somebody went for lunch
				}
				clock = clock.Add(step * time.Millisecond)
				w.end(accepted)
			}
			if share := float64(drafts) / steps; share > c.most || share < c.least {
				t.Errorf("%.3f of the steps had drafts, want between %g and %g", share, c.least, c.most)
			}
		})
	}
}

// TestWatchPlain: where every step has drafts some plain ones are asked for, so
// that there is something to compare with.
func TestWatchPlain(t *testing.T) {
	clock := time.Unix(1, 0)
	w := &watch{now: func() time.Time { return clock }}
	drafts := 0
	for range 1000 {
		p := part{n: 1}
		if w.open(1) {
			p.drafted, drafts = 1, drafts+1
		}
		w.start()
		w.took([]part{p}, 0)
		clock = clock.Add(10 * time.Millisecond)
		if p.drafted > 0 {
			clock = clock.Add(time.Millisecond)
		}
		w.end(0)
	}
	if drafts > 200 {
		t.Errorf("%d of 1000 steps had drafts that were never right", drafts)
	}
}
