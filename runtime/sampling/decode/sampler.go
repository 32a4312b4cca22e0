package decode

import (
	"errors"
	"fmt"
	"math"
)

// Settings are all that a request may say about how its tokens are picked. The
// zero value is greedy.
type Settings struct {
	Options           // Penalty counts the prompt's tokens too
	Strategy  string  // a named strategy with its parameters, in place of Options but for Temperature, Penalty and Seed
	Frequency float64 // taken from a token's logit for each time that it was generated
	Presence  float64 // taken once from the logits of tokens that were generated
	Bias      map[int32]float32
	Rules     Rules // Prompt and Penalty are set by NewSampler
	Exclude   []int32
	Mask      Mask // nil: none
	Rule      Rule // when drafted tokens are accepted

	Epsilon, Alpha float64 // of typical acceptance; 0: 0.09 and 0.3
}

// A Mask says which tokens may come next, for output that must have a form.
type Mask interface {
	// Mask has a bit for each token that may come next, those that end the text
	// among them where it may end. It must not be changed.
	Mask() ([]uint64, error)
	// Ready says whether Mask would return at once; if not, notify is called when
	// it would.
	Ready(notify func()) bool
	// Accept takes the token that was picked, and begins to find the next mask
	// beside the model's step.
	Accept(token int32) error
	// Done says that nothing but the end may come.
	Done() bool
}

// ErrForbidden says that no token may come next.
var ErrForbidden = errors.New("every token is forbidden by the request's own settings")

// A picker of tokens after everything else has changed their logits.
type next interface {
	Next(logits []float32, history []int32) (int32, error)
}

// A Sampler picks the tokens of one sequence: it changes the logits as its
// settings say, in the order rules, penalties, bias, mask, and lets a strategy
// draw. Not safe for concurrent use.
type Sampler struct {
	set     Settings
	draw    next
	plain   bool // logits are used as they are
	bias    []tokenBias
	counts  []tokenCount  // of the tokens that were picked
	index   map[int32]int // where they are in counts
	scratch []float32
}

// A tokenBias and a tokenCount are entries of maps, in lists because each token
// goes through all of them.
type (
	tokenBias struct {
		id    int32
		value float32
	}
	tokenCount struct {
		id int32
		n  int
	}
)

// NewSampler checks settings; prompt is how many tokens the text begins with,
// -1: those before the first that is picked.
func NewSampler(set Settings, prompt int) (*Sampler, error) {
	for _, v := range []struct {
		name  string
		value float64
	}{{"frequency penalty", set.Frequency}, {"presence penalty", set.Presence}} {
		if math.IsNaN(v.value) || math.Abs(v.value) > 100 {
			return nil, fmt.Errorf("%s %v: expected a number between -100 and 100", v.name, v.value)
		}
	}
	for id, b := range set.Bias {
		if b != b {
			return nil, fmt.Errorf("bias of token %d is not a number", id)
		}
	}
	if set.Temperature >= 0 && set.Temperature < minSampling {
		set.Temperature = 0
	}
	c := &Sampler{set: set, index: map[int32]int{}}
	for id, b := range set.Bias {
		c.bias = append(c.bias, tokenBias{id, b})
	}
	c.set.Rules.Prompt, c.set.Rules.Penalty = prompt, set.Penalty
	opt := set.Options
	opt.Penalty = 0 // the rules apply it
	var err error
	if set.Strategy == "" {
		c.draw, err = NewStandardSampler(opt)
	} else {
		if opt.TopK != 0 || opt.TopP != 0 && opt.TopP != 1 || opt.MinP != 0 || opt.Typical != 0 || opt.TailFree != 0 {
			return nil, fmt.Errorf("strategy %s has parameters of its own, in place of top_k, top_p, min_p, typical_p and tfs_z", set.Strategy)
		}
		c.draw, err = NewStrategy(StrategyOptions{Name: set.Strategy, Temperature: opt.Temperature, Seed: opt.Seed, EOS: set.Rules.EOS, Exclude: set.Exclude})
	}
	if err != nil {
		return nil, err
	}
	if _, err := NewStandardSampler(set.Options); err != nil { // the penalty's range
		return nil, err
	}
	if set.Rule == TopSampling && set.Temperature > 0 && set.TopK == 0 && (set.TopP == 0 || set.TopP == 1) && set.MinP == 0 {
		return nil, errors.New("acceptance by top sampling needs top_k, top_p or min_p, which say what the top is")
	}
	c.plain = c.set.Rules.plain() && set.Frequency == 0 && set.Presence == 0 && len(set.Bias) == 0 && set.Mask == nil
	return c, nil
}

// Ready says whether the next token can be picked at once; if not, its mask is
// on its way, and notify is called when it is there.
func (c *Sampler) Ready(notify func()) bool { return c.set.Mask == nil || c.set.Mask.Ready(notify) }

// Next picks the token after history, which holds the prompt and what was
// picked so far. It leaves logits as they are.
func (c *Sampler) Next(logits []float32, history []int32) (int32, error) {
	row, err := c.prepare(logits, history)
	if err != nil {
		return 0, err
	}
	token, err := c.draw.Next(row, history)
	if err != nil {
		return 0, err
	}
	return c.note(token)
}

// prepare changes logits as the settings say.
func (c *Sampler) prepare(logits []float32, history []int32) ([]float32, error) {
	if c.set.Rules.Prompt < 0 {
		c.set.Rules.Prompt = len(history)
	}
	if c.plain {
		return logits, nil
	}
	return c.change(logits, history)
}

// note takes a picked token into account.
func (c *Sampler) note(token int32) (int32, error) {
	at, seen := c.index[token]
	if !seen {
		at = len(c.counts)
		c.counts, c.index[token] = append(c.counts, tokenCount{id: token}), at
	}
	c.counts[at].n++
	if m := c.set.Mask; m != nil {
		if err := m.Accept(token); err != nil {
			return 0, err
		}
	}
	return token, nil
}

// Done says that the form that a mask asks for is complete.
func (c *Sampler) Done() bool { return c.set.Mask != nil && c.set.Mask.Done() }

// change applies everything to a copy of the logits.
func (c *Sampler) change(logits []float32, history []int32) ([]float32, error) {
	if _, ok := argmax(logits); !ok {
		return nil, ErrNaN
	}
	c.scratch = append(c.scratch[:0], logits...)
	row := c.scratch
	c.set.Rules.Apply(row, history)
	if c.set.Frequency != 0 || c.set.Presence != 0 {
		for _, t := range c.counts {
			row[t.id] -= float32(c.set.Frequency*float64(t.n) + c.set.Presence)
		}
	}
	for _, b := range c.bias {
		if b.id >= 0 && int(b.id) < len(row) {
			row[b.id] += b.value
		}
	}
	if c.set.Mask != nil {
		if err := c.forbidMasked(row); err != nil {
			return nil, err
		}
	}
	if _, ok := argmax(row); !ok {
		return nil, ErrForbidden
	}
	return row, nil
}

// forbidMasked leaves the tokens that the mask allows.
func (c *Sampler) forbidMasked(row []float32) error {
	bits, err := c.set.Mask.Mask()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	for i := range row {
		if bits[i>>6]>>(i&63)&1 == 0 {
			row[i] = never
		}
	}
	return nil
}
