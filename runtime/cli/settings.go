//go:build unix

package cli

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// defaultLength is translate's maximum length if neither the call nor
// generation_config.json sets one.
const defaultLength = 200

// settings are the values of generation_config.json that translate uses.
type settings struct {
	start   int32
	best    int
	greedy  bool
	options decode.BeamOptions
}

// readSettings reads the manifest's generation settings. Absent keys have
// transformers' defaults, except for the length.
func readSettings(m *manifest.Manifest) (*settings, error) {
	g := generationConfig(m.Generation)
	s := &settings{best: max(1, g.whole("num_return_sequences", 1))}
	o := &s.options
	o.Beams = max(1, g.whole("num_beams", 1))
	o.LengthPenalty = g.number("length_penalty", 1)
	switch v := m.Generation["early_stopping"]; v {
	case true:
		o.Stopping = decode.StopFull
	case "never":
		o.Stopping = decode.StopNever
	}
	o.Rules = decode.Rules{
		Penalty: g.number("repetition_penalty", 1), NoRepeat: g.whole("no_repeat_ngram_size", 0), BadWords: g.lists("bad_words_ids"),
		MinLength: g.whole("min_length", 0), MinNew: g.whole("min_new_tokens", 0),
		ForcedBOS: g.ids("forced_bos_token_id"), ForcedEOS: g.ids("forced_eos_token_id"),
		Suppress: g.ids("suppress_tokens"), BeginSuppress: g.ids("begin_suppress_tokens"), EOS: slices.Clone(m.EOS),
	}
	if list := g.ids("eos_token_id"); len(list) > 0 { // the tokenizer may have more end tokens, which do not end a translation
		o.Rules.EOS = list
	}
	if err := g.rarer(&o.Rules, m.Vocab); err != nil {
		return nil, fmt.Errorf("generation_config.json: %w", err)
	}
	start := g.ids("decoder_start_token_id")
	if len(start) == 0 && len(o.Rules.ForcedBOS) == 0 { // the tokenizer's target language
		start = g.ids("language_start_token_id")
	}
	switch {
	case len(start) > 0:
		s.start = start[0]
	case m.BOS >= 0:
		s.start = int32(m.BOS)
	case m.Pad >= 0:
		s.start = int32(m.Pad)
	default:
		return nil, fmt.Errorf("no start token is known for %s; set it with --start", m.Name)
	}
	o.MaxLength = defaultLength
	if n := g.whole("max_new_tokens", 0); n > 0 {
		o.MaxLength = n + 1
	} else if n := g.whole("max_length", 0); n > 0 {
		o.MaxLength = n
	}
	o.MaxLength = min(o.MaxLength, m.Context)
	return s, nil
}

// of returns the settings for a source: some rules depend on its tokens.
func (s *settings) of(source []int32) *settings {
	own := *s
	own.options.Rules.Source = source
	return &own
}

// generationConfig is generation_config.json as decoded from JSON.
type generationConfig map[string]any

func (g generationConfig) number(key string, otherwise float64) float64 {
	if v, ok := g[key].(float64); ok {
		return v
	}
	return otherwise
}

func (g generationConfig) whole(key string, otherwise int) int {
	return int(g.number(key, float64(otherwise)))
}

// ids reads a token id or a list of ids.
func (g generationConfig) ids(key string) []int32 { return idList(g[key]) }

func (g generationConfig) lists(key string) (out [][]int32) {
	list, _ := g[key].([]any)
	for _, v := range list {
		out = append(out, idList(v))
	}
	return out
}

func idList(v any) (out []int32) {
	switch v := v.(type) {
	case float64:
		return []int32{int32(v)}
	case []any:
		for _, x := range v {
			out = append(out, idList(x)...)
		}
	}
	return out
}
