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
	"github.com/iflowc/iflowc/runtime/sampling/settings"
)

// samplingFlags select how generate and chat pick tokens.
type samplingFlags struct {
	settingFlags `embed:""`

	Mirostat  int               `enum:"0,1,2" default:"0" help:"Mirostat version: 1, 2, or 0 for off."`
	Tau       *float64          `name:"mirostat-tau" placeholder:"BITS" help:"Mirostat target surprise tau (default: 5)."`
	Eta       *float64          `name:"mirostat-eta" placeholder:"R" help:"Mirostat learning rate eta (default: 0.1)."`
	Frequency float64           `name:"frequency-penalty" placeholder:"F" help:"Frequency penalty: subtract F from a token's logit for each time it was generated."`
	Presence  float64           `name:"presence-penalty" placeholder:"F" help:"Presence penalty: subtract F from the logits of tokens that were generated."`
	Bias      map[string]string `name:"logit-bias" placeholder:"ID=F" help:"Logit bias: add F to a token's logit; may be repeated."`
	Accept    string            `name:"draft-accept" placeholder:"RULE" help:"Acceptance of draft tokens: match (same text), rejection (same distribution), top (within top-k, top-p and min-p) or typical (Medusa's rule)."`
	Seed      *uint64           `placeholder:"S" help:"Random seed (default: 0, in chat another one at each start)."`
}

// A sampler picks the next token from logits and the tokens before it.
type sampler interface {
	Next(logits []float32, history []int32) (int32, error)
	JudgeRow(row decode.Row, history []int32, drafted int32, from []decode.TokenProb) (int32, error)
	TopK() int
	Choice(ahead int) (decode.Choice, bool)
	Draws() func(logits []float32) (int32, []decode.TokenProb, error)
	Path(parent, tokens []int32, row func(node int) []float32) []int
	Restart(prompt, most int, mask decode.Mask)
}

// sampling returns the settings of the flags, the model and the defaults; see
// model.resolve.
func (f *samplingFlags) sampling(m *model, quiet bool) (*sampling, error) {
	flags, err := f.flags()
	if err != nil {
		return nil, err
	}
	if flags.Strategy, err = f.strategy(&flags); err != nil {
		return nil, err
	}
	flags.Seeded = f.Seed != nil
	set, err := m.resolve(&f.settingFlags, flags, quiet)
	if err != nil {
		return nil, err
	}
	set.Frequency, set.Presence = f.Frequency, f.Presence
	if set.Rule, err = decode.ParseRule(cmp.Or(f.Accept, m.manifest.Accept())); err != nil {
		return nil, fmt.Errorf("--draft-accept %s: %w", f.Accept, err)
	}
	if heads := m.manifest.Medusa; heads != nil {
		set.Epsilon, set.Alpha = heads.Threshold, heads.Alpha
	}
	if f.Seed != nil {
		set.Seed = *f.Seed
	}
	set.Bias, err = f.bias(m)
	return set, err
}

// strategy returns the named sampling method with its parameters, or "".
func (f *samplingFlags) strategy(flags *settings.Flags) (string, error) {
	name := f.Strategy
	if f.Mirostat > 0 {
		if name != "" {
			return "", errors.New("--mirostat and --strategy exclude each other")
		}
		flags.Names["strategy"] = "--mirostat"
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
	if name != "" && (f.TopK != nil || f.TopP != nil || f.MinP != nil || f.Typical != nil || f.TFS != nil) {
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
