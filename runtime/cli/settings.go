//go:build unix

package cli

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/settings"
)

// settingFlags set what the model's own configuration and defaults set otherwise.
type settingFlags struct {
	Temp      *float64 `placeholder:"T" help:"Temperature; 0 is greedy decoding (default: the model's own, else 0.8; generate: 0 if neither the model nor another of these flags asks for sampling)."`
	TopK      *int     `placeholder:"K" help:"Top-k sampling: the K most probable tokens; 0 is all (default: the model's own, else 40)."`
	TopP      *float64 `placeholder:"P" help:"Nucleus sampling: the fewest tokens with P of the probability; 1 is all (default: the model's own, else 0.95)."`
	MinP      *float64 `placeholder:"P" help:"Min-p sampling: tokens with at least P times the highest probability; 0 is all (default: the model's own, else 0.05)."`
	Typical   *float64 `placeholder:"P" help:"Locally typical sampling: the most typical tokens with P of the probability (default: the model's own)."`
	TFS       *float64 `name:"tfs" placeholder:"Z" help:"Tail-free sampling parameter z."`
	Penalty   *float64 `name:"repeat-penalty" placeholder:"R" help:"Repetition penalty; above 1 makes earlier tokens less likely (default: the model's own)."`
	Window    *int     `name:"repeat-last-n" placeholder:"N" help:"Number of last tokens that penalties count; -1 is all (default: the model's own, else all)."`
	NoRepeat  *int     `name:"no-repeat-ngram" placeholder:"N" help:"Never repeat an n-gram of N tokens (default: the model's own)."`
	MinTokens *int     `name:"min-tokens" placeholder:"N" help:"Minimum tokens before the end token (default: the model's own)."`
	Strategy  string   `placeholder:"NAME" help:"Sampling method, with parameters after a colon: ${strategies}; also beam in generate (default: the model spec's)."`
	Ignore    []string `name:"ignore-setting" placeholder:"FIELD" help:"Run without a field of the model's generation_config.json or GGUF file."`
	Verbose   bool     `help:"Print all settings of sampling, and where each is from."`
}

// flags returns the settings that the flags set.
func (f *settingFlags) flags() (settings.Flags, error) {
	out := settings.Flags{Values: map[string]float64{}, Names: map[string]string{}, Strategy: f.Strategy}
	for _, v := range []struct {
		name, flag string
		value      *float64
	}{
		{"temperature", "--temp", f.Temp}, {"top_k", "--top-k", number(f.TopK)}, {"top_p", "--top-p", f.TopP}, {"min_p", "--min-p", f.MinP},
		{"typical_p", "--typical", f.Typical}, {"tfs_z", "--tfs", f.TFS}, {"repetition_penalty", "--repeat-penalty", f.Penalty},
		{"penalty_window", "--repeat-last-n", number(f.Window)}, {"no_repeat_ngram_size", "--no-repeat-ngram", number(f.NoRepeat)},
		{"min_new_tokens", "--min-tokens", number(f.MinTokens)},
	} {
		if v.value != nil {
			out.Values[v.name], out.Names[v.name] = *v.value, v.flag
		}
	}
	for _, name := range []string{"no_repeat_ngram_size", "min_new_tokens", "top_k"} {
		if v := out.Values[name]; v < 0 {
			return out, fmt.Errorf("%s %v: expected 0 or more", out.Names[name], v)
		}
	}
	if v := out.Values["penalty_window"]; v < -1 {
		return out, fmt.Errorf("--repeat-last-n %v: expected a number of tokens, or -1 for all", v)
	}
	return out, nil
}

func number(v *int) *float64 {
	if v == nil {
		return nil
	}
	x := float64(*v)
	return &x
}

// A sampling is how a subcommand picks tokens.
type sampling struct {
	decode.Settings
	*settings.Config
	OwnPenalty bool // as in settings.Resolved
}

// resolve returns the settings of the flags, the model and the defaults. quiet says that
// tokens are drawn only if a flag or the model asks for it.
func (m *model) resolve(f *settingFlags, flags settings.Flags, quiet bool) (*sampling, error) {
	c, err := settings.Read(m.manifest, f.Ignore)
	if err != nil {
		return nil, err
	}
	r, err := c.Resolve(flags, quiet)
	if err != nil {
		return nil, err
	}
	if f.Verbose {
		for _, line := range r.Lines() {
			m.say("sampling: %s", line)
		}
	}
	set := r.Settings
	set.Rules.EOS = slices.Clone(m.manifest.EOS)
	if len(m.embedded.Tokenizer) > 0 {
		t, err := m.tokenizer()
		if err != nil {
			return nil, err
		}
		if id, ok := t.UNK(); ok && !slices.Contains(set.Rules.EOS, id) {
			set.Exclude = []int32{id}
		}
	}
	return &sampling{set, c, r.OwnPenalty}, nil
}
