package policy

import (
	"math"
	"time"
)

// waitingPerDecoding returns the number of requests that wait for their first token per
// decoding request; +Inf if none decodes.
func (in *Input) waitingPerDecoding() float64 {
	decoding := 0
	for i := range in.Requests {
		if in.Requests[i].Decoding {
			decoding++
		}
	}
	if decoding == 0 {
		return math.Inf(1)
	}
	return float64(len(in.Requests)-decoding) / float64(decoding)
}

// barrier reports whether requests hold back their last prompt token until the other
// prompts of their burst are computed (a prefill barrier). Without it, the first
// requests decode in many small steps beside the others' prefill and end before them,
// so the last steps are small too; with it, they all decode in full batches. There is
// no barrier if too many requests decode, the prompts take longer than barrierTime or
// do not find pages, the next step computes all of them, or another step is in flight.
func (in *Input) barrier() bool {
	if in.Objective.StepTime <= 0 || in.Limits.Whole || in.off(PrefillBarrier) || in.waitingPerDecoding() < fewDecoding {
		return false
	}
	pending, pages := 0, in.Limits.Pages
	for i := range in.Requests {
		r := &in.Requests[i]
		if r.Blocked {
			return false
		}
		pending += r.Pending()
		pages -= in.Limits.pagesFor(r.Length) - r.Pages
	}
	_, perToken := in.Times.line.estimate()
	wait := time.Duration(float64(pending) * perToken * float64(time.Second))
	return pages >= 0 && wait <= barrierTime && pending > min(in.Limits.Tokens, in.promptBudget(0))
}

// behindBarrier reports whether r waits behind the barrier: for a prompt at least as
// urgent as its own and at most twice as long.
func (in *Input) behindBarrier(r *Request) bool {
	if r.Decoding || r.Waited >= maxOvertaken {
		return false
	}
	for i := range in.Requests {
		o := &in.Requests[i]
		if o != r && !o.Decoding && o.Pending() > 1 && o.Length <= 2*r.Length && o.Priority <= r.Priority {
			return true
		}
	}
	return false
}
