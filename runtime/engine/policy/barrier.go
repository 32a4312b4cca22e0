package policy

import (
	"math"
	"time"
)

// How far apart, in steps, requests may come and still be of one burst, and for
// how many times the step time one waits for others at most.
const (
	burstSteps  = 2
	barrierTime = 200
)

// fewDecoding is how many must wait for each request that generates for a
// prefill barrier.
const fewDecoding = 2

// holdBack marks the requests that wait with their last prompt token until others
// have computed theirs too (a prefill barrier), and says whether there are any.
// Where many come at once and few generate, whoever began first would wait
// between two tokens for everybody else's prompt, or everybody else would have to
// prefill in small chunks beside. Together they begin when the last of them could
// in any case, and go on without a stop. Nobody waits for a prompt of more than
// twice the own length, for one that came much later or is less urgent, or longer
// than barrierTime. The step that computes all that is left has their last tokens
// too.
func (in *Input) holdBack(out *Batch) (barrier bool) {
	out.held = append(out.held[:0], make([]bool, len(in.Requests))...)
	pending := 0
	for i := range in.Requests {
		pending += in.Requests[i].Pending()
	}
	if !in.mayHold(pending) {
		return false
	}
	for i := range in.Requests {
		if in.waits(i) {
			out.held[i], barrier = true, true
		}
	}
	if pending <= min(in.Limits.Tokens, in.promptBudget(0, nil, barrier)) {
		clear(out.held)
	}
	return barrier
}

// waits says whether request i waits for the prompt of another one.
func (in *Input) waits(i int) bool {
	r := &in.Requests[i]
	if r.Decoding {
		return false
	}
	for j := range in.Requests {
		if o := &in.Requests[j]; i != j && o.Pending() > 1 && r.waitsFor(o) {
			return true
		}
	}
	return false
}

// mayHold says whether steps have a time to keep, few requests generate, and
// there is more to prefill than the next step will.
func (in *Input) mayHold(pending int) bool {
	if in.Objective.StepTime <= 0 || !in.Limits.Barrier || in.pressure() < fewDecoding || in.off(PrefillBarrier) {
		return false
	}
	_, perToken := in.Times.line.estimate()
	wait := time.Duration(float64(pending) * perToken * float64(time.Second))
	return wait <= barrierTime*in.Objective.StepTime && pending > min(in.Limits.Tokens, in.promptBudget(0, nil, false))
}

// waitsFor says whether r may wait for o's prompt.
func (r *Request) waitsFor(o *Request) bool {
	return max(r.Arrived-o.Arrived, o.Arrived-r.Arrived) <= burstSteps && o.Length <= 2*r.Length && o.Priority <= r.Priority
}

// pressure is how many requests wait for their first token for each that
// generates, less urgent ones left out; +Inf: nobody generates.
func (in *Input) pressure() float64 {
	decoding, urgent := 0, math.MaxInt
	for i := range in.Requests {
		if r := &in.Requests[i]; r.Decoding {
			decoding++
			urgent = min(urgent, r.Priority)
		}
	}
	if decoding == 0 {
		return math.Inf(1)
	}
	waiting := 0
	for i := range in.Requests {
		if r := &in.Requests[i]; !r.Decoding && r.Priority <= urgent {
			waiting++
		}
	}
	return float64(waiting) / float64(decoding)
}
