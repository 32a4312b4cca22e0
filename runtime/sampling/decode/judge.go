package decode

import (
	"errors"
)

// A Rule is an acceptance rule for drafted tokens.
type Rule int

// Acceptance rules. With Match the result is identical to that without drafts, with
// Rejection it has the same distribution. TopSampling and TypicalAcceptance change the
// distribution.
const (
	Match             Rule = iota // accept the drafted token if the sampler picks the same one
	Rejection                     // accept with probability min(1, p/q) (Leviathan et al. 2023, arXiv:2211.17192, §2.3)
	TopSampling                   // accept a token that top-k, top-p, … keep, else as Rejection (Inferflow's report, algorithm 1)
	TypicalAcceptance             // accept a token with a probability over a threshold that falls with the entropy (Cai et al. 2024, arXiv:2401.10774, §2.3.1)
)

// rules maps names to rules.
var rules = map[string]Rule{"": Match, "match": Match, "rejection": Rejection, "top": TopSampling, "typical": TypicalAcceptance}

// ParseRule parses a rule's name; "" is Match.
func ParseRule(name string) (Rule, error) {
	r, ok := rules[name]
	if !ok {
		return 0, errors.New("expected match, rejection, top or typical")
	}
	return r, nil
}

// A TokenProb is a token with its probability.
type TokenProb struct {
	ID int32
	P  float64
}

// Judge picks the token at a position where drafted was drafted (-1: none), sampled
// from the distribution from (nil: not sampled), by the acceptance rule. Without a
// draft it is Next.
func (c *Sampler) Judge(logits []float32, history []int32, drafted int32, from []TokenProb) (int32, error) {
	s, ok := c.draw.(*StandardSampler)
	if c.set.Rule == Match || drafted < 0 || !ok || c.set.Rule == Rejection && from == nil {
		return c.Next(logits, history)
	}
	row, err := c.prepare(logits, history)
	if err != nil {
		return 0, err
	}
	if c.set.Rule == TypicalAcceptance && c.typical(row, drafted) {
		return c.note(drafted)
	}
	pool, err := s.distribution(row)
	if err != nil {
		return 0, err
	}
	if c.set.Rule == TypicalAcceptance {
		return c.note(weighted(pool, &s.rng))
	}
	return c.note(s.judge(pool, drafted, from, c.set.Rule))
}

// A TokenLogit is a token with its logit.
type TokenLogit struct {
	ID    int32
	Logit float32
}

// A Row is what a step returned of a row of logits.
type Row struct {
	Chosen bool // Token was picked already, by the sampler's next Choice
	Token  int32
	Top    []TokenLogit     // some of the largest logits, in descending order, equal ones by token
	Logits func() []float32 // all of them, unless Chosen
}

// JudgeRow is Judge with a row of which it reads all logits only if it must.
func (c *Sampler) JudgeRow(row Row, history []int32, drafted int32, from []TokenProb) (int32, error) {
	if row.Chosen {
		return c.take(row.Token)
	}
	n := c.suffice()
	if n == 0 || len(row.Top) < n || c.set.Rule != Match && drafted >= 0 {
		return c.Judge(row.Logits(), history, drafted, from)
	}
	return c.note(c.draw.(*StandardSampler).fromTop(row.Top[:n]))
}

// TopK returns the number of largest logits that suffice JudgeRow, or 0 if it needs all.
func (c *Sampler) TopK() int {
	if c.set.Rule != Match {
		return 0
	}
	return c.suffice()
}

// suffice returns the number of largest logits from which the sampler picks; 0: all.
func (c *Sampler) suffice() int {
	switch s, ok := c.draw.(*StandardSampler); {
	case !ok || !c.plain:
		return 0
	case s.opt.Temperature == 0:
		return 1
	default:
		return s.opt.TopK
	}
}

// distribution returns the candidates that Next samples from; their probabilities sum
// to 1.
func (s *StandardSampler) distribution(logits []float32) ([]candidate, error) {
	top, ok := argmax(logits)
	if !ok {
		return nil, ErrNaN
	}
	if s.opt.Temperature == 0 {
		return []candidate{{id: int32(top), p: 1}}, nil
	}
	c := s.keep(s.candidates(logits, logits[top]))
	sum := 0.0
	for _, x := range c {
		sum += x.p
	}
	for i := range c {
		c[i].p /= sum
	}
	return c, nil
}

// judge accepts a drafted token, or samples another one from the positive part of the
// difference between the model's and the draft's distribution.
func (s *StandardSampler) judge(pool []candidate, drafted int32, from []TokenProb, rule Rule) int32 {
	p, q := 0.0, 1.0
	for _, c := range pool {
		if c.id == drafted {
			p = c.p
		}
	}
	if p > 0 && rule == TopSampling {
		return drafted
	}
	rest := map[int32]float64{drafted: 1}
	if from != nil {
		clear(rest)
		for _, c := range from {
			rest[c.ID] = c.P
		}
		q = rest[drafted]
	}
	if s.rng.Float64()*q < p {
		return drafted
	}
	sum := 0.0
	for i := range pool {
		pool[i].p = max(0, pool[i].p-rest[pool[i].id])
		sum += pool[i].p
	}
	if sum <= 0 { // the distributions differ only by rounding
		return drafted
	}
	return weighted(pool, &s.rng)
}

// Draws returns a function that samples drafted tokens for this sampler to judge, or
// nil if deterministic drafts are better. It uses the sampler's options on a draft
// model's logits, without rules, penalties and masks.
func (c *Sampler) Draws() func(logits []float32) (int32, []TokenProb, error) {
	s, ok := c.draw.(*StandardSampler)
	if !ok || c.set.Rule == Match || s.opt.Temperature == 0 {
		return nil
	}
	d := newStandardSampler(s.opt, 0x6a09e667f3bcc909)
	return func(logits []float32) (int32, []TokenProb, error) {
		pool, err := d.distribution(logits)
		if err != nil {
			return 0, nil, err
		}
		from := make([]TokenProb, len(pool))
		for i, c := range pool {
			from[i] = TokenProb{c.id, c.p}
		}
		return weighted(pool, &d.rng), from, nil
	}
}
