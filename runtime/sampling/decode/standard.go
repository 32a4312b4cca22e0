// Package decode samples the next token from a row of logits. Each sampling method is a
// small function over candidates in a file of its own. A StandardSampler applies them
// in the order of Hugging Face transformers: repetition penalty, temperature, top-k,
// typical, tail-free, top-p, min-p.
package decode

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// Options configure a StandardSampler. The zero value is greedy.
type Options struct {
	Temperature float64 // 0: greedy
	TopK        int     // keep the k most probable; 0: all
	TopP        float64 // keep the fewest most probable with a total probability of at least p; 0 or 1: all
	MinP        float64 // keep those with at least p times the largest probability; 0: all
	Penalty     float64 // repetition penalty: divides positive and multiplies negative logits of earlier tokens; 0 or 1: none
	Typical     float64 // locally typical sampling: probability mass to keep; 0 or 1: all
	TailFree    float64 // tail-free sampling parameter z; 0 or 1: none
	Seed        uint64

	// PenaltyWindow is the number of last tokens that Penalty counts; 0: all. A Sampler's
	// frequency and presence penalties count the generated ones among them.
	PenaltyWindow int
}

// recent returns the tokens that penalties with a window count.
func recent(sequence []int32, window int) []int32 {
	if window > 0 && window < len(sequence) {
		return sequence[len(sequence)-window:]
	}
	return sequence
}

// greedyBelow is the temperature below which sampling is greedy: only the largest logit
// has a probability above 0, and 1/temperature would overflow.
const greedyBelow = 1e-5

// maxTemperature is the highest temperature that makes a difference in float32.
const maxTemperature = 1e12

// maxPenalty bounds the repetition penalty, and its inverse from below, so that no
// logit overflows.
const maxPenalty = 1000

// ErrNaN is returned if a row of logits contains NaN, or only minus infinity.
var ErrNaN = errors.New("the model's logits are not numbers (NaN); its weights or its input are damaged")

// A candidate is a token that may be sampled. p is its probability after softmax.
type candidate struct {
	id    int32
	logit float32
	p     float64
}

// A StandardSampler samples tokens. The same options and rows produce the same tokens
// on every machine. It is not safe for concurrent use.
type StandardSampler struct {
	opt  Options
	rng  randoms
	pool []candidate // scratch
	sums []float64   // scratch: unnormalized probabilities of blocks of logits
	seen map[int32]struct{}
	row  []float32 // scratch: penalized logits
}

// NewStandardSampler validates options and returns a sampler.
func NewStandardSampler(opt Options) (*StandardSampler, error) {
	opt, err := opt.check()
	if err != nil {
		return nil, err
	}
	return newStandardSampler(opt, 0x9e3779b97f4a7c15), nil
}

// newStandardSampler returns a sampler for valid options, whose random numbers depend on
// their seed and a constant.
func newStandardSampler(opt Options, constant uint64) *StandardSampler {
	return &StandardSampler{opt: opt, rng: randoms{rng: rand.New(rand.NewPCG(opt.Seed, constant))}, seen: map[int32]struct{}{}}
}

// check validates options and returns them with a temperature that makes a difference.
func (opt Options) check() (Options, error) {
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	switch {
	case !finite(opt.Temperature) || opt.Temperature < 0:
		return opt, fmt.Errorf("temperature %v: expected a number of 0 (greedy) or more", opt.Temperature)
	case opt.TopK < 0:
		return opt, fmt.Errorf("top-k %d: expected 0 (all) or more", opt.TopK)
	case !finite(opt.TopP) || opt.TopP < 0 || opt.TopP > 1:
		return opt, fmt.Errorf("top-p %v: expected a number between 0 and 1", opt.TopP)
	case !finite(opt.MinP) || opt.MinP < 0 || opt.MinP > 1:
		return opt, fmt.Errorf("min-p %v: expected a number between 0 and 1", opt.MinP)
	case opt.PenaltyWindow < 0:
		return opt, fmt.Errorf("penalty window %d: expected 0 (all tokens) or more", opt.PenaltyWindow)
	case !finite(opt.Typical) || opt.Typical < 0 || opt.Typical > 1:
		return opt, fmt.Errorf("typical-p %v: expected a number between 0 and 1", opt.Typical)
	case !finite(opt.TailFree) || opt.TailFree < 0 || opt.TailFree > 1:
		return opt, fmt.Errorf("tail-free z %v: expected a number between 0 and 1", opt.TailFree)
	case opt.Penalty != 0 && !(opt.Penalty >= 1.0/maxPenalty && opt.Penalty <= maxPenalty):
		return opt, fmt.Errorf("repetition penalty %v: expected 0 (none), or a number between %v and %v", opt.Penalty, 1.0/maxPenalty, maxPenalty)
	}
	if opt.Temperature < greedyBelow {
		opt.Temperature = 0
	}
	opt.Temperature = min(opt.Temperature, maxTemperature)
	return opt, nil
}

// Next samples a token from logits. history contains the sequence's earlier tokens;
// only the repetition penalty uses it.
func (s *StandardSampler) Next(logits []float32, history []int32) (int32, error) {
	if len(logits) == 0 {
		return 0, errors.New("bug: an empty row of logits")
	}
	top, ok := argmax(logits)
	if !ok {
		return 0, ErrNaN
	}
	penalized := s.opt.Penalty != 0 && s.opt.Penalty != 1 && len(history) > 0
	if s.opt.Temperature == 0 && !penalized {
		return int32(top), nil
	}
	if penalized {
		return s.fromPenalized(logits, history)
	}
	return s.pick(logits, logits[top]), nil
}

// pick samples from a row with the largest logit top. If the options allow it, most of
// the vocabulary is never listed.
func (s *StandardSampler) pick(logits []float32, top float32) int32 {
	floor := s.floor(top)
	shares := s.opt.TopP > 0 && s.opt.TopP < 1
	switch curved := s.opt.Typical > 0 && s.opt.Typical < 1 || s.opt.TailFree > 0 && s.opt.TailFree < 1; {
	case math.IsInf(float64(top), 1), s.opt.TopK == 0 && curved:
		return s.draw(s.candidates(logits, top))
	case s.opt.TopK > 0:
		return s.draw(s.largest(logits, min(s.opt.TopK, len(logits)), float32(floor)))
	case shares:
		return weighted(minP(s.nucleus(logits, top, float32(floor)), s.opt.MinP), &s.rng)
	case s.opt.MinP > 0:
		floor = max(floor, float64(top)+s.opt.Temperature*math.Log(s.opt.MinP))
	}
	return s.drawAny(logits, top, float32(floor))
}

// fromTop samples from the TopK largest logits as pick does from all.
func (s *StandardSampler) fromTop(top []TokenLogit) int32 {
	if s.opt.Temperature == 0 {
		return top[0].ID
	}
	floor := float32(s.floor(top[0].Logit))
	s.pool = s.pool[:0]
	for _, t := range top {
		if t.Logit >= floor {
			s.pool = append(s.pool, candidate{id: t.ID, logit: t.Logit})
		}
	}
	return s.draw(s.pool)
}

// floor returns the smallest logit that matters beside the largest one: 30 × temperature
// below it. Smaller ones have less than 1e-13 of its probability, less than the rounding
// error of the sum over a vocabulary.
func (s *StandardSampler) floor(top float32) float64 { return float64(top) - 30*s.opt.Temperature }

// candidates lists the tokens whose logits are not below floor.
func (s *StandardSampler) candidates(logits []float32, top float32) []candidate {
	floor := s.floor(top)
	s.pool = s.pool[:0]
	for i, l := range logits {
		if float64(l) >= floor {
			s.pool = append(s.pool, candidate{id: int32(i), logit: l})
		}
	}
	return s.pool
}

// draw samples from the candidates that remain after keep.
func (s *StandardSampler) draw(c []candidate) int32 { return weighted(s.keep(c), &s.rng) }

// keep applies the sampling methods to the candidates.
func (s *StandardSampler) keep(c []candidate) []candidate {
	c = topK(c, s.opt.TopK)
	softmax(c, s.opt.Temperature)
	if t := s.opt.Typical; t > 0 && t < 1 {
		c = typical(c, t)
		softmax(c, s.opt.Temperature) // renormalize what is left
	}
	if z := s.opt.TailFree; z > 0 && z < 1 {
		front(c, len(c))
		c = c[:beforeTail(c, z)]
		softmax(c, s.opt.Temperature)
	}
	c = topP(c, s.opt.TopP)
	return minP(c, s.opt.MinP)
}
