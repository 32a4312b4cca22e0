//go:build unix

package engine

import (
	"context"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
)

// An inFlightStep is a step that was submitted and not waited for yet. A model that is
// split into pipeline stages has as many steps in flight as stages, and no sequence is
// in two of them. Other models have one.
type inFlightStep struct {
	step  *device.Step
	parts []part
	start time.Time
	wait  func() error
}

// A pipeline holds an engine's steps.
type pipeline struct {
	idle     []*inFlightStep
	inFlight []*inFlightStep // oldest first
	shown    *inFlightStep   // its rows are valid until the next Infer

	active time.Duration // time in which at least one step was in flight
	filled time.Duration // sum of the time that each step was in flight
	since  time.Time     // time of the last update of active and filled
}

// openPipeline allocates the arrays of each step that can be in flight.
// Encoder-decoders have one, because their sources are encoded between steps.
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

// stages returns the number of steps that can be in flight.
func (f *pipeline) stages() int {
	n := len(f.idle) + len(f.inFlight)
	if f.shown != nil {
		n++
	}
	return n
}

// count updates active and filled. It is called before the number of steps in flight
// changes.
func (f *pipeline) count(now time.Time) {
	if n := len(f.inFlight); n > 0 {
		d := now.Sub(f.since)
		f.active += d
		f.filled += d * time.Duration(n)
	}
	f.since = now
}

// worked returns the total time that the stages computed: the sum of busy, the time
// that each stage measured, or the time that steps were in flight if stages measure
// none.
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

// Bubble returns the fraction of the stages' time in which they were idle while steps
// were in flight. It is 0 for a model without pipeline stages.
func (s Stats) Bubble() float64 {
	if s.Active <= 0 || s.Stages < 2 {
		return 0
	}
	return max(0, 1-float64(s.Worked)/(float64(s.Active)*float64(s.Stages)))
}

// recycle returns the arrays of the step that Infer returned to the idle ones.
func (e *Engine) recycle() {
	if f := e.pipe.shown; f != nil {
		e.pipe.shown = nil
		e.pipe.idle = append(e.pipe.idle, f)
	}
}

// submit starts a step with a fair fraction of the sequences that can continue; it
// returns false if there are none.
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

// waitOldest waits for the oldest step in flight and makes it the shown one.
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
			e.dismiss(p.seq)
		}
	}
	if err != nil {
		e.discard(f)
		return nil, err
	}
	e.times.Measure(f.step.Tokens, now.Sub(f.start))
	return f, nil
}

// Drain waits for the steps in flight and discards their results. Callers that have
// removed every sequence use it to free the pages.
func (e *Engine) Drain() { e.drain() }

// drain waits for all steps in flight and discards their results. Later steps compute
// the rows again.
func (e *Engine) drain() {
	for len(e.pipe.inFlight) > 0 {
		if f, err := e.waitOldest(); err == nil { // the caller has an error already, or needs none
			e.discard(f)
		}
		e.recycle()
	}
}

// discard frees the cells that the sequences of a step took for it.
func (e *Engine) discard(f *inFlightStep) {
	for _, p := range f.parts {
		e.trimCells(p.seq)
	}
}

// infer submits steps while sequences can continue and stages are free, and returns the
// results of the oldest step.
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
			if err := e.feedDraft(f); err != nil {
				return nil, err
			}
			return results, e.planHeads(results)
		}
		e.recycle() // all sequences of the step were removed
	}
}
