package policy

import (
	"math"
	"time"
)

// waitingEach is how many requests wait for their first token for each one that
// generates; +Inf: none generates.
func (in *Input) waitingEach() float64 {
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

// barrier says whether requests wait with their last prompt token until those
// that came with them have computed theirs too (a prefill barrier). Whoever
// began first would generate beside the prompts of all others, in many small
// steps, and end before them, which leaves small steps at the end too. Together
// they generate in full steps. There is no barrier where many generate, where the
// prompts take longer than barrierTime or find no pages, where the next step computes
// all of them, or while another step is under way.
func (in *Input) barrier() bool {
	if in.Objective.StepTime <= 0 || in.Limits.Whole || in.off(PrefillBarrier) || in.waitingEach() < fewDecoding {
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

// behindBarrier says whether r waits behind the barrier: for a prompt at least as urgent as
// its own and at most twice as long.
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
