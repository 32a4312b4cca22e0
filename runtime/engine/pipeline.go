//go:build unix

package engine

import (
	"context"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
)

// An inFlightStep is a step that was submitted and not waited for yet. On a model
// whose layers are spread over the stages of a pipeline there are as many as
// stages, so that each stage works: no sequence is in two of them. On any other
// model there is one.
type inFlightStep struct {
	step  *device.Step
	parts []part
	start time.Time
	wait  func() error
}

// A pipeline holds the steps of an engine.
type pipeline struct {
	idle     []*inFlightStep
	inFlight []*inFlightStep // oldest first
	shown    *inFlightStep   // whose rows the caller may read, until the next Infer

	active time.Duration // in which steps were under way
	filled time.Duration // over the steps, how long each was
	since  time.Time     // when active and filled were brought up to date
}

// openPipeline makes a set of arrays for each step that can be under way. Sources
// are read between steps, so encoder-decoders have one step at a time.
func (e *Engine) openPipeline(cfg *device.Config) error {
	n := e.dev.Info().InFlight
	if e.source >= 0 {
		n = 1
	}
	for range n {
		s, err := device.NewStep(cfg)
		if err != nil {
			return err
		}
		e.pipe.idle = append(e.pipe.idle, &inFlightStep{step: s})
	}
	e.step = e.pipe.idle[0].step
	return nil
}

// stages is how many steps can be under way.
func (f *pipeline) stages() int {
	n := len(f.idle) + len(f.inFlight)
	if f.shown != nil {
		n++
	}
	return n
}

// count brings the times of steps under way up to date, before their number
// changes.
func (f *pipeline) count(now time.Time) {
	if n := len(f.inFlight); n > 0 {
		d := now.Sub(f.since)
		f.active += d
		f.filled += d * time.Duration(n)
	}
	f.since = now
}

// worked is how long the stages computed, all together: by their own clocks
// where they have some, else by the number of steps under way.
func (f *pipeline) worked(busy []time.Duration) time.Duration {
	if len(busy) == 0 {
		return f.filled
	}
	var sum time.Duration
	for _, d := range busy {
		sum += d
	}
	return sum
}

// Bubble is the share of the stages' time in which they had nothing to compute,
// out of the time in which steps were under way; 0 of a model that is no
// pipeline.
func (s Stats) Bubble() float64 {
	if s.Active <= 0 || s.Stages < 2 {
		return 0
	}
	return max(0, 1-float64(s.Worked)/(float64(s.Active)*float64(s.Stages)))
}

// recycle makes the arrays whose rows were shown free for another step.
func (e *Engine) recycle() {
	if f := e.pipe.shown; f != nil {
		e.pipe.shown = nil
		e.pipe.idle = append(e.pipe.idle, f)
	}
}

// submit starts a step with a fair part of the sequences that can go on; false:
// none can.
func (e *Engine) submit() (bool, error) {
	last := len(e.pipe.idle) - 1
	f := e.pipe.idle[last]
	parts, err := e.plan()
	if err != nil || len(parts) == 0 {
		return false, err
	}
	f.parts = append(f.parts[:0], parts...)
	e.fillStep(f.step, f.parts)
	f.start = time.Now()
	e.pipe.count(f.start)
	e.pipe.idle = e.pipe.idle[:last]
	e.pipe.inFlight = append(e.pipe.inFlight, f)
	for _, p := range f.parts {
		p.seq.inFlight = true
	}
	f.wait = e.ctx.Submit(f.step)
	return true, nil
}

// waitOldest waits for the oldest step in flight.
func (e *Engine) waitOldest() (*inFlightStep, error) {
	f := e.pipe.inFlight[0]
	err := f.wait()
	now := time.Now()
	e.pipe.count(now)
	e.pipe.inFlight = append(e.pipe.inFlight[:0], e.pipe.inFlight[1:]...)
	e.pipe.shown = f
	for _, p := range f.parts {
		p.seq.inFlight = false
		if p.seq.removed {
			e.pages.free(p.seq.pages)
			p.seq.pages = nil
		}
	}
	if err != nil {
		return nil, err
	}
	e.times.Measure(f.step.Tokens, now.Sub(f.start))
	return f, nil
}

// Drain waits for the steps under way and drops what they give. It is for
// callers that have removed every sequence: their pages come back.
func (e *Engine) Drain() { e.drain() }

// drain waits for all steps under way and drops what they give: the rows are
// computed again by steps that the sequences are in later.
func (e *Engine) drain() {
	for len(e.pipe.inFlight) > 0 {
		e.waitOldest() // its error is the one that is told already, or nobody asks
		e.recycle()
	}
}

// infer is Infer: it starts steps as long as sequences can go on and stages are
// free, and shows what the oldest one gave.
func (e *Engine) infer(ctx context.Context) ([]Result, error) {
	e.recycle()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e.gain.since = time.Now()
		for more := true; more && len(e.pipe.idle) > 0; {
			var err error
			if more, err = e.submit(); err != nil {
				e.drain()
				return nil, err
			}
		}
		if len(e.pipe.inFlight) == 0 {
			return nil, nil
		}
		f, err := e.waitOldest()
		if err != nil {
			e.drain()
			return nil, err
		}
		e.stats.Steps++
		e.stats.Tokens += int64(f.step.Tokens)
		e.parts = append(e.parts[:0], f.parts...)
		if e.pipe.stages() == 1 {
			e.gain.took(e.parts, e.stats.Accepted)
		}
		if results := e.collect(f); len(results) > 0 {
			return results, e.planHeads(results)
		}
		e.recycle() // all its sequences are gone
	}
}
