//go:build unix

package cli

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/settings"
)

// defaultLength is translate's maximum length if neither the call nor
// generation_config.json sets one.
const defaultLength = 200

// A translateSettings is how translate runs.
type translateSettings struct {
	start   int32
	best    int
	single  bool               // it keeps one text instead of beams
	sampler decode.Settings    // of a single text
	options decode.BeamOptions // also of a single text, apart from the beams
	lines   []string           // see settings.Resolved.Lines
}

// readSettings reads the manifest's generation settings. Absent fields have
// transformers' defaults, except for the length. Tokens are drawn only if do_sample is
// true.
func readSettings(m *manifest.Manifest, ignored []string) (*translateSettings, error) {
	c, err := settings.Read(m, ignored)
	if err != nil {
		return nil, err
	}
	var flags settings.Flags
	if !c.DoSample() {
		flags.Values = map[string]float64{"temperature": 0}
		flags.Names = map[string]string{"temperature": "built-in default: translate draws tokens only with do_sample"}
	}
	r, err := c.Resolve(flags, true)
	if err != nil {
		return nil, err
	}
	if len(c.Stop) > 0 {
		return nil, c.Refuse("stop_strings", c.Stop, "a translation ends at a token")
	}
	s := &translateSettings{best: c.Whole("num_return_sequences", 1), sampler: r.Settings, lines: r.Lines()}
	o := &s.options
	o.Beams, o.LengthPenalty, o.Stopping = c.Whole("num_beams", 1), c.Number("length_penalty", 1), c.Stopping
	if o.Beams > 1 && c.DoSample() {
		return nil, c.Refuse("do_sample", true, "a beam search draws no tokens at random")
	}
	o.Rules = r.SearchRules(nil)
	o.Rules.EOS = slices.Clone(m.EOS)
	if len(c.EOS) > 0 { // the tokenizer may have more end tokens, which do not end a translation
		o.Rules.EOS = c.EOS
	}
	switch {
	case len(c.Start) > 0:
		s.start = c.Start[0]
	case m.Language != nil && len(o.Rules.ForcedBOS) == 0: // the tokenizer's target language
		s.start = m.Language.Start
	case m.BOS >= 0:
		s.start = int32(m.BOS)
	case m.Pad >= 0:
		s.start = int32(m.Pad)
	default:
		return nil, fmt.Errorf("no start token is known for %s; set it with --start", m.Name)
	}
	o.MaxLength = min(m.Context, 1+c.Limit(nil, 1, defaultLength-1))
	return s, nil
}

// of returns the settings for a source: some rules depend on its tokens.
func (s *translateSettings) of(source []int32) *translateSettings {
	own := *s
	own.options.Rules.Source = source
	return &own
}

// newSampler returns the sampler of a single text.
func (s *translateSettings) newSampler() (*decode.Sampler, error) {
	set := s.sampler
	set.Rules = s.options.Rules
	c, err := decode.NewSampler(set, 1)
	return c, wrong(err)
}
