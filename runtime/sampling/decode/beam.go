package decode

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Stopping is the condition that ends a beam search before MaxLength (early_stopping in
// generation_config.json).
type Stopping int

// Values of Stopping.
const (
	StopHeuristic Stopping = iota // false: when the best running beam would not become a hypothesis if it ended now
	StopFull                      // true: when there are Beams hypotheses
	StopNever                     // "never": when no running beam can still become a hypothesis
)

// BeamOptions configure a beam search.
type BeamOptions struct {
	Beams         int
	LengthPenalty float64 // a hypothesis' score is its log-probability divided by length^LengthPenalty
	Stopping      Stopping
	MaxLength     int // maximum tokens of a sequence, prompt included
	Rules         Rules
}

// A Branch continues a beam by a token.
type Branch struct {
	Parent int // index of the beam
	Token  int32
}

// A Hypothesis is a finished sequence, prompt included.
type Hypothesis struct {
	Tokens []int32
	Score  float32
}

// hopeless is the score of candidates that must not be chosen. It is finite, because
// forbidden tokens must score lower.
const hopeless = float32(-1e9)

// A BeamSearch keeps the most probable beams, extends each by every token in a step,
// and ranks finished hypotheses by length-normalized log-probability. It reproduces the
// results of transformers' generate: sums in float32, (1 + number of EOS tokens) ×
// Beams candidates per step, and only ended ones among the first Beams candidates
// become hypotheses.
type BeamSearch struct {
	opt      BeamOptions
	prompt   int
	running  []beam // Beams beams, best first
	finished []beam // at most Beams, best first
	improves bool   // a running beam may still become a hypothesis

	scratch    []float32
	candidates []candidateBeam
}

// A beam is a sequence with its score: the sum of log-probabilities while it runs,
// divided by length^LengthPenalty once it has finished.
type beam struct {
	tokens []int32
	score  float32
}

type candidateBeam struct {
	Branch
	score float32
	ended bool
}

// NewBeamSearch starts a search with a prompt, the only beam of the first step.
func NewBeamSearch(prompt []int32, opt BeamOptions) (*BeamSearch, error) {
	switch {
	case opt.Beams < 1 || opt.Beams > 1<<10:
		return nil, fmt.Errorf("%d beams: expected a number between 1 and 1024", opt.Beams)
	case math.IsNaN(opt.LengthPenalty) || math.IsInf(opt.LengthPenalty, 0):
		return nil, fmt.Errorf("length penalty %v: expected a number", opt.LengthPenalty)
	case len(prompt) >= opt.MaxLength:
		return nil, fmt.Errorf("a maximum length of %d tokens leaves none to generate after a prompt of %d", opt.MaxLength, len(prompt))
	}
	opt.Rules.Prompt, opt.Rules.MaxLength = len(prompt), opt.MaxLength
	b := &BeamSearch{opt: opt, prompt: len(prompt), improves: true}
	for i := range opt.Beams {
		score := hopeless // a copy of the first beam, so that its tokens are not chosen twice
		if i == 0 {
			score = 0
		}
		b.running = append(b.running, beam{slices.Clone(prompt), score})
	}
	return b, nil
}

// Step takes the logits after each beam: one row in the first step, then one for each
// branch that the previous step returned. It returns the branches to continue, or none
// when the search is over.
func (b *BeamSearch) Step(logits [][]float32) ([]Branch, error) {
	if err := b.propose(logits); err != nil {
		return nil, err
	}
	length := len(b.running[0].tokens) + 1
	all := true
	for i := range b.candidates {
		c := &b.candidates[i]
		c.ended = length >= b.opt.MaxLength || slices.Contains(b.opt.Rules.EOS, c.Token)
		all = all && c.ended
	}
	b.finish(length)
	branches := b.advance()
	b.improves = b.improves && b.mayImprove(length)
	full := b.opt.Stopping == StopFull && len(b.finished) == b.opt.Beams
	if !b.improves || full || all {
		return nil, nil
	}
	return branches, nil
}

// propose finds the best continuations of all beams; among equals, that of the earlier
// beam, then of the smaller id.
func (b *BeamSearch) propose(logits [][]float32) error {
	keep := max(2, 1+len(b.opt.Rules.EOS)) * b.opt.Beams
	b.candidates = b.candidates[:0]
	for i := range b.running {
		row := logits[min(i, len(logits)-1)]
		var err error
		if b.scratch, err = LogSoftmax(b.scratch, row); err != nil {
			return err
		}
		b.opt.Rules.Apply(b.scratch, b.running[i].tokens)
		b.take(i, keep)
	}
	b.cut(keep)
	return nil
}

// take adds a beam's continuations, with scores in scratch, to the candidates. It sorts
// them whenever there are twice as many as needed: inserting them one at a time takes
// seconds for requests with many EOS tokens.
func (b *BeamSearch) take(parent, keep int) {
	least, full := float32(0), false
	if len(b.candidates) >= keep {
		b.cut(keep)
		least, full = b.candidates[keep-1].score, true
	}
	for id, s := range b.scratch {
		s += b.running[parent].score
		if full && !(s > least) {
			continue
		}
		b.candidates = append(b.candidates, candidateBeam{Branch: Branch{parent, int32(id)}, score: s})
		if len(b.candidates) == 2*keep {
			b.cut(keep)
			least, full = b.candidates[keep-1].score, true
		}
	}
}

// cut sorts the candidates and keeps the best; among equals, the first.
func (b *BeamSearch) cut(keep int) {
	slices.SortStableFunc(b.candidates, func(x, y candidateBeam) int { return cmp.Compare(y.score, x.score) })
	b.candidates = b.candidates[:min(keep, len(b.candidates))]
}

// finish adds hypotheses for those of the first Beams candidates that ended.
func (b *BeamSearch) finish(length int) {
	if !b.improves || b.opt.Stopping == StopFull && len(b.finished) == b.opt.Beams {
		return
	}
	for i := range min(b.opt.Beams, len(b.candidates)) {
		c := b.candidates[i]
		if !c.ended || math.IsInf(float64(c.score), -1) {
			continue
		}
		score := c.score / b.lengthFactor(length-b.prompt)
		at := len(b.finished)
		for at > 0 && b.finished[at-1].score < score {
			at--
		}
		b.finished = slices.Insert(b.finished, at, beam{b.extended(c), score})
		b.finished = b.finished[:min(len(b.finished), b.opt.Beams)]
	}
}

// advance makes the best candidates the running beams; ended ones are used only if
// there are no others.
func (b *BeamSearch) advance() []Branch {
	next := make([]candidateBeam, len(b.candidates))
	for i, c := range b.candidates {
		if c.ended {
			c.score += hopeless
		}
		next[i] = c
	}
	slices.SortStableFunc(next, func(x, y candidateBeam) int {
		switch {
		case x.score > y.score:
			return -1
		case x.score < y.score:
			return 1
		}
		return 0
	})
	next = next[:min(len(next), b.opt.Beams)]
	running := make([]beam, len(next))
	branches := make([]Branch, len(next))
	for i, c := range next {
		running[i], branches[i] = beam{b.extended(c), c.score}, c.Branch
	}
	b.running = running
	return branches
}

// extended returns the tokens of a candidate.
func (b *BeamSearch) extended(c candidateBeam) []int32 {
	parent := b.running[c.Parent].tokens
	return append(append(make([]int32, 0, len(parent)+1), parent...), c.Token)
}

// lengthFactor returns length^LengthPenalty.
func (b *BeamSearch) lengthFactor(length int) float32 {
	return float32(math.Pow(float64(length), b.opt.LengthPenalty))
}

// mayImprove reports whether the best running beam may still beat the worst hypothesis.
func (b *BeamSearch) mayImprove(length int) bool {
	if b.opt.Stopping == StopNever && b.opt.LengthPenalty > 0 {
		length = b.opt.MaxLength
	}
	worst := hopeless
	if len(b.finished) == b.opt.Beams {
		worst = b.finished[len(b.finished)-1].score
	}
	return b.running[0].score/b.lengthFactor(length-b.prompt) > worst
}

// Best returns at most n hypotheses, best first.
func (b *BeamSearch) Best(n int) []Hypothesis {
	out := make([]Hypothesis, 0, n)
	for _, f := range b.finished[:min(n, len(b.finished))] {
		out = append(out, Hypothesis{f.tokens, f.score})
	}
	return out
}
