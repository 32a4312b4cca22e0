package decode

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// A Choice is how a sampler picks a token from a row of logits, apart from the row. It lets
// another process pick the token that the sampler would.
type Choice struct {
	Options
	Random float64 // the sampler's next random number, in [0, 1); 0 if it is greedy
}

// Choice returns the choice of a following token: of the next one if ahead is 0, of the one
// after it if ahead is 1. It returns false if tokens depend on more than the row.
func (c *Sampler) Choice(ahead int) (Choice, bool) {
	s, ok := c.draw.(*StandardSampler)
	if !ok || !c.plain || c.set.Rule != Match {
		return Choice{}, false
	}
	x := Choice{Options: s.opt}
	x.Seed = 0
	if s.opt.Temperature > 0 {
		x.Random = s.rng.peek(ahead)
	}
	return x, true
}

// Greedy is the Choice of a greedy sampler.
func Greedy(int) (Choice, bool) { return Choice{}, true }

// take records a token that was picked elsewhere by the next Choice.
func (c *Sampler) take(token int32) (int32, error) {
	if s := c.draw.(*StandardSampler); s.opt.Temperature > 0 {
		s.rng.Float64()
	}
	return c.note(token)
}

// Check returns an error for a choice that no sampler makes.
func (c Choice) Check() error {
	if !(c.Random >= 0 && c.Random < 1) {
		return fmt.Errorf("random number %v: expected one in [0, 1)", c.Random)
	}
	opt, err := c.Options.check()
	if err == nil && opt != c.Options {
		err = errors.New("a temperature that is greedy, or too high")
	}
	return err
}

// A Picker picks tokens by choices. It is not safe for concurrent use.
type Picker struct{ s StandardSampler }

// Pick picks a token from a row of logits by a choice that is valid.
func (p *Picker) Pick(logits []float32, c Choice) (int32, error) {
	p.s.opt = c.Options
	p.s.rng.ahead = append(p.s.rng.ahead[:0], c.Random)
	return p.s.Next(logits, nil)
}

// randoms is a source of random numbers that can look ahead.
type randoms struct {
	rng   *rand.Rand
	ahead []float64 // taken from rng, but not yet by Float64
}

// Float64 returns the next number, in [0, 1).
func (r *randoms) Float64() float64 {
	if len(r.ahead) == 0 {
		return r.rng.Float64()
	}
	x := r.ahead[0]
	r.ahead = append(r.ahead[:0], r.ahead[1:]...)
	return x
}

// peek returns the number after n others, without taking it.
func (r *randoms) peek(n int) float64 {
	for len(r.ahead) <= n {
		r.ahead = append(r.ahead, r.rng.Float64())
	}
	return r.ahead[n]
}
