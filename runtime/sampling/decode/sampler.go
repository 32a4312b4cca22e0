package decode

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Settings are all sampling settings of a request. The zero value is greedy.
type Settings struct {
	Options           // Penalty includes the prompt's tokens
	Strategy  string  // named strategy with parameters; replaces Options except Temperature, Penalty and Seed
	Frequency float64 // subtracted from a logit for each time the token was generated
	Presence  float64 // subtracted from the logits of tokens that were generated
	Bias      map[int32]float32
	Rules     Rules // Prompt, Penalty and PenaltyWindow are set by NewSampler
	Exclude   []int32
	Mask      Mask // nil: none
	Rule      Rule // acceptance rule for drafted tokens

	Epsilon, Alpha float64 // parameters of typical acceptance; 0: 0.09 and 0.3
}

// A Mask restricts the next token, for structured output.
type Mask interface {
	// Mask returns a bit for each token: 1 if it may come next. EOS tokens are allowed
	// where the text may end. The caller must not change the result. nil: every token.
	Mask() ([]uint64, error)
	// Ready reports whether Mask would return without blocking. If not, notify is
	// called when it would.
	Ready(notify func()) bool
	// Accept adds the chosen token and starts to compute the next mask, concurrently
	// with the model's step.
	Accept(token int32) error
	// Done reports whether only the end may follow.
	Done() bool
}

// ErrForbidden is returned if no token may come next.
var ErrForbidden = errors.New("every token is forbidden by the request's own settings")

// next samples a token from logits after all other changes.
type next interface {
	Next(logits []float32, history []int32) (int32, error)
}

// A Sampler picks the tokens of one sequence. It changes the logits by its settings, in
// the order rules, penalties, bias and mask, and then samples. It is not safe for
// concurrent use.
type Sampler struct {
	set     Settings
	draw    next
	plain   bool // logits are used unchanged
	light   bool // but for a repetition penalty of a few tokens
	bias    []tokenBias
	counts  []tokenCount  // tokens that were picked
	index   map[int32]int // token → index in counts
	window  []int32       // scratch of counted, as is within
	within  []tokenCount
	scratch []float32
}

// tokenBias and tokenCount are entries of lists, because every token iterates over all
// of them.
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

// NewSampler validates settings and returns a sampler. prompt is the number of prompt
// tokens; -1: all tokens before the first call of Next.
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
	if set.Temperature >= 0 && set.Temperature < greedyBelow {
		set.Temperature = 0
	}
	c := &Sampler{set: set, index: map[int32]int{}}
	for id, b := range set.Bias {
		c.bias = append(c.bias, tokenBias{id, b})
	}
	c.set.Rules.Prompt, c.set.Rules.Penalty, c.set.Rules.PenaltyWindow = prompt, set.Penalty, set.PenaltyWindow
	opt := set.Options
	opt.Penalty, opt.PenaltyWindow = 0, 0 // the rules apply them
	var err error
	if set.Strategy == "" {
		c.draw, err = NewStandardSampler(opt)
	} else {
		if opt.TopK != 0 || opt.TopP != 0 && opt.TopP != 1 || opt.MinP != 0 || opt.Typical != 0 || opt.TailFree != 0 {
			return nil, fmt.Errorf("strategy %s cannot be combined with top_k, top_p, min_p, typical_p or tfs_z; use its own parameters", set.Strategy)
		}
		c.draw, err = NewStrategy(StrategyOptions{Name: set.Strategy, Temperature: opt.Temperature, Seed: opt.Seed, EOS: set.Rules.EOS, Exclude: set.Exclude})
	}
	if err != nil {
		return nil, err
	}
	if _, err := NewStandardSampler(set.Options); err != nil { // validates the penalties
		return nil, err
	}
	if set.Rule == TopSampling && set.Temperature > 0 && set.TopK == 0 && (set.TopP == 0 || set.TopP == 1) && set.MinP == 0 {
		return nil, errors.New("acceptance by top sampling needs top_k, top_p or min_p")
	}
	c.classify()
	return c, nil
}

// SearchRules returns the rules of a beam search with these settings after a prompt.
func (set *Settings) SearchRules(prompt []int32) Rules {
	r := set.Rules
	r.Penalty, r.PenaltyWindow = set.Penalty, set.PenaltyWindow
	r.SequenceBias = append(slices.Clip(r.SequenceBias), SingleBiases(set.Bias)...)
	if r.Source == nil && r.readsSource() {
		r.Source = prompt
	}
	return r
}

// classify sets plain and light.
func (c *Sampler) classify() {
	set := &c.set
	rest := set.Rules
	rest.Penalty = 0
	free := rest.plain() && set.Frequency == 0 && set.Presence == 0 && len(set.Bias) == 0 && set.Mask == nil
	none := set.Penalty == 0 || set.Penalty == 1
	_, standard := c.draw.(*StandardSampler)
	c.plain = free && none
	c.light = free && set.Penalty > 1 && set.PenaltyWindow > 0 && standard && set.TopK > 0 && set.Temperature > 0
}

// Restart begins another text, with a prompt of so many tokens and at most so many after
// it, and a mask of its own; nil: none. Random numbers continue.
func (c *Sampler) Restart(prompt, most int, mask Mask) {
	c.set.Mask = mask
	c.classify()
	c.set.Rules.Prompt, c.set.Rules.MaxLength, c.set.Rules.Source = prompt, prompt+most, nil
	c.counts = c.counts[:0]
	clear(c.index)
}

// Ready reports whether the next token can be picked without waiting for a mask. If
// not, notify is called when it can.
func (c *Sampler) Ready(notify func()) bool { return c.set.Mask == nil || c.set.Mask.Ready(notify) }

// Next picks the token after history, which contains the prompt and the picked tokens.
// It does not change logits.
func (c *Sampler) Next(logits []float32, history []int32) (int32, error) {
	if c.light {
		token, err := c.draw.(*StandardSampler).fromLargest(logits, recent(history, c.set.PenaltyWindow), float32(c.set.Penalty))
		if err != nil {
			return 0, err
		}
		return c.note(token)
	}
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

// prepare returns the logits after the changes of the settings.
func (c *Sampler) prepare(logits []float32, history []int32) ([]float32, error) {
	if c.set.Rules.Prompt < 0 {
		c.set.Rules.Prompt = len(history)
	}
	if r := &c.set.Rules; r.Source == nil && r.readsSource() {
		r.Source = slices.Clone(history[:min(r.Prompt, len(history))])
	}
	if c.plain {
		return logits, nil
	}
	return c.change(logits, history)
}

// note records a picked token.
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

// Done reports whether the structured output is complete.
func (c *Sampler) Done() bool { return c.set.Mask != nil && c.set.Mask.Done() }

// change returns a changed copy of the logits.
func (c *Sampler) change(logits []float32, history []int32) ([]float32, error) {
	if _, ok := argmax(logits); !ok {
		return nil, ErrNaN
	}
	c.scratch = append(c.scratch[:0], logits...)
	row := c.scratch
	c.set.Rules.Apply(row, history)
	if c.set.Frequency != 0 || c.set.Presence != 0 {
		for _, t := range c.counted(history) {
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

// counted returns the tokens that the frequency and presence penalties count: the
// generated ones, or those in the window.
func (c *Sampler) counted(history []int32) []tokenCount {
	n := c.set.PenaltyWindow
	generated := history[min(c.set.Rules.Prompt, len(history)):]
	if n == 0 || n >= len(generated) {
		return c.counts
	}
	c.window = append(c.window[:0], recent(generated, n)...)
	slices.Sort(c.window)
	c.within = c.within[:0]
	for i, id := range c.window {
		if i == 0 || id != c.window[i-1] {
			c.within = append(c.within, tokenCount{id: id})
		}
		c.within[len(c.within)-1].n++
	}
	return c.within
}

// forbidMasked forbids the tokens that the mask excludes. A token that it forces may come
// whatever the other settings are.
func (c *Sampler) forbidMasked(row []float32) error {
	if m, ok := c.set.Mask.(interface{ Forced() (int32, bool) }); ok {
		if token, forced := m.Forced(); forced {
			if int(token) >= len(row) {
				return ErrForbidden
			}
			for i := range row {
				row[i] = never
			}
			row[token] = 0
			return nil
		}
	}
	bits, err := c.set.Mask.Mask()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	if bits == nil {
		return nil
	}
	for i := range row {
		if bits[i>>6]>>(i&63)&1 == 0 {
			row[i] = never
		}
	}
	return nil
}
