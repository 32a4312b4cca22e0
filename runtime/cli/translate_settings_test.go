//go:build unix

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

func withSettings(t *testing.T, text string) *manifest.Manifest {
	t.Helper()
	m := &manifest.Manifest{Name: "m", Vocab: 50, Context: 100, BOS: 0, Pad: 1, EOS: []int32{2}}
	if err := json.Unmarshal([]byte(text), &m.Generation); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRarerSettings(t *testing.T) {
	t.Parallel()
	s, err := readSettings(withSettings(t, `{"encoder_no_repeat_ngram_size": 3, "encoder_repetition_penalty": 1.5, "remove_invalid_values": true,
		"renormalize_logits": true, "exponential_decay_length_penalty": [10, 1.05], "sequence_bias": [[[4, 7], -1.5], [[9], 2.0]]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := decode.Rules{
		EOS: []int32{2}, SourceRepeat: 3, SourcePenalty: 1.5, Finite: true, Renormalize: true,
		Decay:        decode.Decay{Start: 10, Factor: 1.05},
		SequenceBias: []decode.Bias{{Tokens: []int32{4, 7}, Value: -1.5}, {Tokens: []int32{9}, Value: 2}},
		Source:       []int32{5, 6},
	}
	if d := cmp.Diff(want, s.of([]int32{5, 6}).options.Rules); d != "" {
		t.Error(d)
	}
	if s.options.Rules.Source != nil {
		t.Error("the settings of one source changed those of all")
	}
}

func TestRarerSettingsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"encoder_no_repeat_ngram_size": -1}`:             "from 0",
		`{"encoder_repetition_penalty": 0}`:                "from 0.001",
		`{"exponential_decay_length_penalty": [3]}`:        "[start, factor]",
		`{"exponential_decay_length_penalty": [1.5, 2]}`:   "[start, factor]",
		`{"exponential_decay_length_penalty": [3, -1]}`:    "[start, factor]",
		`{"exponential_decay_length_penalty": ["3", "2"]}`: "[start, factor]",
		`{"sequence_bias": []}`:                            "sequence_bias",
		`{"sequence_bias": {"a": 1}}`:                      "sequence_bias",
		`{"sequence_bias": [[[1], "x"]]}`:                  "sequence_bias",
		`{"sequence_bias": [[[1, 50], 1.0]]}`:              "token id 50: the vocabulary has 50 tokens",
	} {
		if _, err := readSettings(withSettings(t, text), nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "generation_config.json") {
			t.Errorf("%s: %v, expected %q", text, err, want)
		}
	}
}

// TestLanguageStart: the tokenizer's target language starts a text only where
// neither the folder nor the call names a start or a first token.
func TestLanguageStart(t *testing.T) {
	t.Parallel()
	id := int32(7)
	for _, c := range []struct {
		generation string
		last       bool
		call       translateCmd
		want       int32
	}{
		{`{}`, false, translateCmd{}, 9},
		{`{"decoder_start_token_id": 2}`, false, translateCmd{}, 2},
		{`{"forced_bos_token_id": 7}`, false, translateCmd{}, 0},
		{`{}`, false, translateCmd{ForcedBOS: &id}, 0},
		{`{}`, false, translateCmd{Start: &id}, 7},
		{`{}`, false, translateCmd{Tgt: "x"}, 0},
		{`{}`, true, translateCmd{Tgt: "x"}, 9},
	} {
		m := withSettings(t, c.generation)
		m.Language = &manifest.Language{Start: 9, Last: c.last}
		s, err := c.call.settings(&model{manifest: m})
		if err != nil || s.start != c.want {
			t.Errorf("%s %+v: %+v %v, expected to start with %d", c.generation, c.call, s, err, c.want)
		}
	}
}
