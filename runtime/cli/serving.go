//go:build unix

package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// servingFlags are the flags of continuous batching and of the defaults of requests.
type servingFlags struct {
	Parallel     int           `placeholder:"N" help:"Maximum concurrent sequences (default: 16)."`
	Context      int           `placeholder:"N" help:"Maximum tokens of a sequence (default: the model's, or what memory allows)."`
	Pages        int           `placeholder:"N" help:"KV cache pages of 64 tokens (default: enough for all sequences, or what memory allows)."`
	BatchTokens  int           `name:"batch-tokens" default:"512" placeholder:"512" help:"Maximum tokens per step."`
	StepTime     time.Duration `name:"step-time" default:"11ms" placeholder:"11ms" help:"Target step latency, which limits the prefill tokens of a step; with 0s only --batch-tokens does."`
	NoPrefix     bool          `name:"no-prefix-cache" help:"Disable prefix caching."`
	MaxTokens    int           `name:"max-tokens" placeholder:"N" help:"Default max_tokens of requests (default: the model's max_new_tokens or max_length, else the rest of the context)."`
	settingFlags `embed:""`

	Reasoning int    `name:"reasoning-budget" default:"-1" placeholder:"N" help:"Default maximum tokens of reasoning, after which the answer begins; 0: no reasoning, -1: no limit (default)."`
	Template  string `name:"chat-template" placeholder:"NAME" help:"Chat template: a built-in name, a file, or the template's text (default: the model's own)."`
}

// defaultParallel is the default of --parallel.
const defaultParallel = 16

// options returns the engine's options.
func (f *servingFlags) options(m *model) (engine.Options, error) {
	for _, v := range []struct {
		name     string
		n, least int
	}{{"parallel", f.Parallel, 0}, {"context", f.Context, 0}, {"pages", f.Pages, 0}, {"batch-tokens", f.BatchTokens, 1}, {"max-tokens", f.MaxTokens, 0}, {"reasoning-budget", f.Reasoning, -1}} {
		if v.n < v.least || v.n > 1<<20 {
			return engine.Options{}, wrong(fmt.Errorf("--%s %d: expected a number between %d and %d", v.name, v.n, v.least, 1<<20))
		}
	}
	opt := engine.Options{
		MaxSeqs: f.Parallel, Context: f.Context, Pages: f.Pages, MaxTokens: f.BatchTokens, StepTime: f.StepTime, Prefix: !f.NoPrefix, Populate: true, Brief: brief,
	}
	if opt.MaxSeqs == 0 {
		opt.MaxSeqs = m.manifest.Engine.Sequences
	}
	if opt.MaxSeqs == 0 {
		opt.MaxSeqs = defaultParallel
	}
	if m.manifest.Network != decoderOnly { // an encoder reads whole texts
		opt.MaxTokens = max(opt.MaxTokens, m.manifest.Context)
	}
	return opt, nil
}

// defaults returns the settings of requests that set nothing.
func (f *servingFlags) defaults(m *model) (d server.Defaults, err error) {
	flags, err := f.flags()
	if err != nil {
		return d, err
	}
	set, err := m.resolve(&f.settingFlags, flags, false)
	if err != nil {
		return d, err
	}
	if err := set.NoBeams("serve"); err != nil && m.manifest.Network == decoderOnly {
		return d, err
	}
	if _, err := decode.NewSampler(set.Settings, 0); err != nil {
		return d, err
	}
	return server.Defaults{
		Settings: set.Settings, OwnPenalty: set.OwnPenalty, ReasoningBudget: &f.Reasoning, EOS: set.Rules.EOS, Stop: set.Stop,
		MaxTokens: cmp.Or(f.MaxTokens, m.manifest.Engine.MaxOutput, set.Whole("max_new_tokens", 0)), MaxLength: set.Whole("max_length", 0),
	}, nil
}
