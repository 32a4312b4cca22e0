//go:build unix

package engine

import (
	"math"
	"time"
)

// How far apart, in steps, sequences may come and still begin together, and for
// how many times the limit of a step one waits for others at most.
const (
	togetherSteps = 2
	togetherTime  = 200
)

// gather marks the sequences that wait with their last token of the prompt
// until others have read theirs too. Where many come at once and few are in
// decoding, whoever began first would wait between two tokens for everybody
// else's prompt, or everybody else would have to read in small pieces beside.
// Together they begin when the last of them could in any case, and go on
// without a stop. Nobody waits for a prompt of more than twice the own length,
// for one that came much later or is less urgent, or longer than
// togetherTime. The step that reads all that is left has their last tokens too.
func (e *Engine) gather() {
	e.together = false
	for _, s := range e.seqs {
		s.held = false
	}
	left := e.unread()
	if !e.mayGather(left) {
		return
	}
	for _, s := range e.seqs {
		for _, t := range e.seqs {
			s.held = s.held || !s.begun && t != s && t.pending() > 1 && s.beginsWith(t)
		}
		e.together = e.together || s.held
	}
	if left <= min(e.opt.MaxTokens, e.promptRoom(0, nil)) {
		e.letGo()
	}
}

// unread is how many tokens of prompts are still to be read, and those of
// sequences in decoding.
func (e *Engine) unread() (left int) {
	for _, s := range e.seqs {
		left += s.pending()
	}
	return left
}

// mayGather says whether there is a time that a step should take, few in
// decoding, and more to read than the next step will.
func (e *Engine) mayGather(left int) bool {
	if e.opt.StepTime <= 0 || e.whole || e.source >= 0 || e.fly.stages() > 1 {
		return false
	}
	if e.pressure() < fewDecoding {
		return false
	}
	_, perToken := e.pace.line()
	wait := time.Duration(float64(left) * perToken * float64(time.Second))
	return wait <= togetherTime*e.opt.StepTime && left > min(e.opt.MaxTokens, e.promptRoom(0, nil))
}

// fewDecoding is how many must wait for each sequence in decoding for those that
// come together to begin together.
const fewDecoding = 2

// pressure is how many sequences whose prompts are read, or wait for others',
// there are for each that is in decoding, less urgent ones left out; +Inf: nobody
// is in decoding.
func (e *Engine) pressure() float64 {
	decoding, urgent := 0, math.MaxInt
	for _, s := range e.seqs {
		if s.begun {
			decoding++
			urgent = min(urgent, s.priority)
		}
	}
	if decoding == 0 {
		return math.Inf(1)
	}
	waiting := 0
	for _, s := range e.seqs {
		if !s.begun && s.priority <= urgent {
			waiting++
		}
	}
	return float64(waiting) / float64(decoding)
}

// beginsWith says whether s may wait for t's prompt.
func (s *sequence) beginsWith(t *sequence) bool {
	return max(s.born-t.born, t.born-s.born) <= togetherSteps && len(t.tokens) <= 2*len(s.tokens) && t.priority <= s.priority
}

// letGo lets all begin that wait for others; false: none does.
func (e *Engine) letGo() (any bool) {
	for _, s := range e.seqs {
		any = any || s.held
		s.held = false
	}
	return any
}
