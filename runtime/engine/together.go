//go:build unix

package engine

import (
	"slices"
	"time"
)

// How far apart, in steps, sequences may come and still begin together, and for
// how many times the limit of a step one waits for others at most.
const (
	togetherSteps = 2
	togetherTime  = 200
)

// gather marks the sequences that wait with their last token of the prompt
// until others have read theirs too. Where many come at once and nobody is in
// decoding, whoever began first would wait between two tokens for everybody
// else's prompt, or everybody else would have to read in small pieces beside.
// Together they begin when the last of them could in any case, and go on
// without a stop. Nobody waits for a prompt of more than twice the own length,
// for one that came much later or is less urgent, or longer than
// togetherTime.
func (e *Engine) gather() {
	for _, s := range e.seqs {
		s.held = false
	}
	if !e.mayGather() {
		return
	}
	for _, s := range e.seqs {
		for _, t := range e.seqs {
			s.held = s.held || t != s && t.pending() > 1 && s.beginsWith(t)
		}
	}
}

// mayGather says whether there is a time that a step should take, and nobody in
// decoding, and more to read than the next step will.
func (e *Engine) mayGather() bool {
	if e.opt.StepTime <= 0 || e.whole || e.source >= 0 || e.fly.stages() > 1 {
		return false
	}
	if e.streaming() {
		return false
	}
	left := 0
	for _, s := range e.seqs {
		left += s.pending()
	}
	_, perToken := e.pace.line()
	wait := time.Duration(float64(left) * perToken * float64(time.Second))
	return wait <= togetherTime*e.opt.StepTime && left > min(e.opt.MaxTokens, e.promptRoom(0, nil))
}

// streaming says whether a sequence is in decoding.
func (e *Engine) streaming() bool {
	return slices.ContainsFunc(e.seqs, func(s *sequence) bool { return s.begun })
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
