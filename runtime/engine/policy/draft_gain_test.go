package policy

import (
	"testing"
	"time"
)

// TestDraftGain checks that drafts that lose back off for ever longer times, that those
// that gain continue, and that long gaps between steps are not counted.
func TestDraftGain(t *testing.T) {
	for _, c := range []struct {
		name    string
		seqs    int
		plain   time.Duration
		drafted time.Duration
		accepts int64 // accepted tokens per step, of all sequences
		most    float64
		least   float64 // fraction of steps with drafts
	}{
		{"never right", 1, 10, 11, 0, 0.12, 0.001},
		{"half as fast, a token more", 1, 10, 21, 1, 0.12, 0.001},
		{"a token more for little", 1, 10, 12, 1, 1, 0.95},
		{"eight, of which one gains", 8, 10, 12, 1, 0.12, 0.001},
		{"eight, of which four gain", 8, 10, 12, 4, 1, 0.95},
		{"even", 3, 10, 10, 0, 1, 0.95},
	} {
		t.Run(c.name, func(t *testing.T) {
			var g DraftGain
			drafts := 0
			const steps = 4000
			for i := range steps {
				draft := i >= gainPlain && g.Open(c.seqs)
				step, accepts := c.plain, int64(0)
				if draft {
					step, accepts = c.drafted, c.accepts
					drafts++
				}
				if i%300 == 299 {
					step = 1e6 // a gap between steps
				}
				g.Begin(c.seqs)
				g.Measure(c.seqs, draft, accepts, step*time.Millisecond)
			}
			if share := float64(drafts) / steps; share > c.most || share < c.least {
				t.Errorf("%.3f of the steps had drafts, want between %g and %g", share, c.least, c.most)
			}
		})
	}
}

// TestDraftGainPlain checks that some plain steps are requested if every step has
// drafts, to compare with.
func TestDraftGainPlain(t *testing.T) {
	var g DraftGain
	drafts := 0
	for range 1000 {
		draft, step := g.Open(1), 10*time.Millisecond
		if draft {
			drafts, step = drafts+1, 11*time.Millisecond
		}
		g.Begin(1)
		g.Measure(1, draft, 0, step)
	}
	if drafts > 200 {
		t.Errorf("%d of 1000 steps had drafts that were never right", drafts)
	}
}
