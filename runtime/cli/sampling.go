//go:build unix

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// samplingFlags select the sampling method.
type samplingFlags struct {
	Temp      *float64          `placeholder:"T" help:"Temperature; 0 is greedy decoding (default: 0, or 1 if another sampling flag is given)."`
	TopK      int               `placeholder:"K" help:"Top-k sampling: the K most probable tokens."`
	TopP      float64           `placeholder:"P" help:"Nucleus sampling: the fewest tokens with P of the probability."`
	MinP      float64           `placeholder:"P" help:"Min-p sampling: tokens with at least P times the highest probability."`
	Typical   float64           `placeholder:"P" help:"Locally typical sampling: the most typical tokens with P of the probability."`
	TFS       float64           `name:"tfs" placeholder:"Z" help:"Tail-free sampling parameter z."`
	Mirostat  int               `enum:"0,1,2" default:"0" help:"Mirostat version: 1, 2, or 0 for off."`
	Tau       *float64          `name:"mirostat-tau" placeholder:"BITS" help:"Mirostat target surprise tau (default: 5)."`
	Eta       *float64          `name:"mirostat-eta" placeholder:"R" help:"Mirostat learning rate eta (default: 0.1)."`
	Penalty   float64           `name:"repeat-penalty" placeholder:"R" help:"Repetition penalty; above 1 makes earlier tokens less likely."`
	Frequency float64           `name:"frequency-penalty" placeholder:"F" help:"Frequency penalty: subtract F from a token's logit for each time it was generated."`
	Presence  float64           `name:"presence-penalty" placeholder:"F" help:"Presence penalty: subtract F from the logits of tokens that were generated."`
	NoRepeat  int               `name:"no-repeat-ngram" placeholder:"N" help:"Never repeat an n-gram of N tokens."`
	Bias      map[string]string `name:"logit-bias" placeholder:"ID=F" help:"Logit bias: add F to a token's logit; may be repeated."`
	MinTokens int               `name:"min-tokens" placeholder:"N" help:"Minimum tokens before the end token."`
	Strategy  string            `placeholder:"NAME" help:"Sampling method, with parameters after a colon: ${strategies}; also beam in generate."`
	Accept    string            `name:"draft-accept" placeholder:"RULE" help:"Acceptance of draft tokens: match (same text), rejection (same distribution), top (within top-k, top-p and min-p) or typical (Medusa's rule)."`
	Seed      *uint64           `placeholder:"S" help:"Random seed (default: 0)."`
}

// A sampler picks the next token from logits and the tokens before it.
type sampler interface {
	Next(logits []float32, history []int32) (int32, error)
	JudgeRow(row decode.Row, history []int32, drafted int32, from []decode.TokenProb) (int32, error)
	TopK() int
	Choice(ahead int) (decode.Choice, bool)
	Draws() func(logits []float32) (int32, []decode.TokenProb, error)
	Path(parent, tokens []int32, row func(node int) []float32) []int
}

// sampler returns the sampler for the flags.
func (f *samplingFlags) sampler(m *model) (sampler, error) {
	set, err := f.settings(m)
	if err != nil {
		return nil, wrong(err)
	}
	c, err := decode.NewSampler(set, -1)
	return c, wrong(err)
}

func (f *samplingFlags) settings(m *model) (set decode.Settings, err error) {
	set = decode.Settings{
		Options:   decode.Options{TopK: f.TopK, TopP: f.TopP, MinP: f.MinP, Typical: f.Typical, TailFree: f.TFS, Penalty: f.Penalty},
		Frequency: f.Frequency, Presence: f.Presence,
		Rules: decode.Rules{NoRepeat: f.NoRepeat, MinNew: f.MinTokens},
	}
	if f.NoRepeat < 0 || f.MinTokens < 0 {
		return set, fmt.Errorf("--no-repeat-ngram %d --min-tokens %d: expected 0 or more", f.NoRepeat, f.MinTokens)
	}
	if set.Rule, err = decode.ParseRule(cmp.Or(f.Accept, m.manifest.Accept())); err != nil {
		return set, fmt.Errorf("--draft-accept %s: %w", f.Accept, err)
	}
	if heads := m.manifest.Medusa; heads != nil {
		set.Epsilon, set.Alpha = heads.Threshold, heads.Alpha
	}
	if set.Strategy, err = f.strategy(); err != nil {
		return set, err
	}
	o := &set.Options
	if o.TopK != 0 || o.TopP != 0 || o.MinP != 0 || o.Typical != 0 || o.TailFree != 0 || f.Seed != nil || set.Strategy != "" {
		o.Temperature = 1
	}
	if f.Temp != nil {
		o.Temperature = *f.Temp
	}
	if f.Seed != nil {
		o.Seed = *f.Seed
	}
	if set.Bias, err = f.bias(m); err != nil {
		return set, err
	}
	set.Rules.EOS = append(set.Rules.EOS, m.manifest.EOS...)
	if len(m.embedded.Tokenizer) > 0 && set.Strategy != "" {
		t, err := m.tokenizer()
		if err != nil {
			return set, err
		}
		if id, ok := t.UNK(); ok && !slices.Contains(set.Rules.EOS, id) {
			set.Exclude = []int32{id}
		}
	}
	return set, nil
}

// strategy returns the named sampling method with its parameters, or "".
func (f *samplingFlags) strategy() (string, error) {
	name := f.Strategy
	if f.Mirostat > 0 {
		if name != "" {
			return "", errors.New("--mirostat and --strategy exclude each other")
		}
		name = fmt.Sprintf("mirostat%d", f.Mirostat)
		sep := ":"
		for _, p := range []struct {
			name  string
			value *float64
		}{{"tau", f.Tau}, {"eta", f.Eta}} {
			if p.value != nil {
				name += fmt.Sprintf("%s%s=%v", sep, p.name, *p.value)
				sep = ","
			}
		}
	}
	if name != "" && (f.TopK != 0 || f.TopP != 0 || f.MinP != 0 || f.Typical != 0 || f.TFS != 0) {
		return "", errors.New("--strategy has parameters of its own: write --strategy NAME:parameter=value,… in place of --top-k, --top-p, --min-p, --typical and --tfs")
	}
	return name, nil
}

// bias parses --logit-bias.
func (f *samplingFlags) bias(m *model) (map[int32]float32, error) {
	out := map[int32]float32{}
	for _, key := range slices.Sorted(maps.Keys(f.Bias)) {
		id, err := strconv.Atoi(key)
		if err != nil || id < 0 || id >= m.manifest.Vocab {
			return nil, fmt.Errorf("--logit-bias %s: no token id; the vocabulary has %d tokens", key, m.manifest.Vocab)
		}
		v, err := strconv.ParseFloat(f.Bias[key], 32)
		if err != nil || math.IsNaN(v) {
			return nil, fmt.Errorf("--logit-bias %s=%s: expected a number", key, f.Bias[key])
		}
		out[int32(id)] = float32(v)
	}
	return out, nil
}
