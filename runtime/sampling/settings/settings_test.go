package settings

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// transformersFields are the fields that GenerationConfig of transformers 5.24 reads.
const transformersFields = `max_length max_new_tokens min_length min_new_tokens early_stopping max_time stop_strings do_sample num_beams use_mtp
use_cache cache_implementation cache_config max_cache_len temperature top_k top_p min_p top_h typical_p epsilon_cutoff eta_cutoff repetition_penalty
encoder_repetition_penalty length_penalty no_repeat_ngram_size bad_words_ids renormalize_logits forced_bos_token_id forced_eos_token_id
remove_invalid_values exponential_decay_length_penalty suppress_tokens begin_suppress_tokens sequence_bias token_healing guidance_scale
watermarking_config num_return_sequences output_attentions output_hidden_states output_scores output_logits return_dict_in_generate pad_token_id
bos_token_id eos_token_id encoder_no_repeat_ngram_size decoder_start_token_id is_assistant num_assistant_tokens num_assistant_tokens_schedule
assistant_confidence_threshold prompt_lookup_num_tokens max_matching_ngram_size assistant_early_exit assistant_lookbehind target_lookbehind
assistant_ensemble_weight speculation_type compile_config disable_compile continuous_batching_config low_memory penalty_alpha dola_layers
diversity_penalty num_beam_groups constraints force_words_ids prefill_chunk_size _commit_hash _from_model_config transformers_version
force_bos_token_to_be_generated`

// ggufFields are the keys of sampling settings that llama.cpp reads.
const ggufFields = `sequence top_k top_p min_p xtc_probability xtc_threshold temp penalty_last_n penalty_repeat mirostat mirostat_tau mirostat_eta`

// TestEveryField: each field of transformers and llama.cpp is honored, refused, or
// without effect for a reason.
func TestEveryField(t *testing.T) {
	t.Parallel()
	names := strings.Fields(transformersFields)
	for _, key := range strings.Fields(ggufFields) {
		names = append(names, gguf+key)
	}
	for _, name := range names {
		if lookUp(name) == nil {
			t.Errorf("%s is not in the table", name)
		}
	}
	for _, f := range fields {
		uses := 0
		for _, use := range []bool{f.read != nil, f.elsewhere != "", f.without != "", f.refused != ""} {
			if use {
				uses++
			}
		}
		if uses != 1 || f.refused == "" && f.neutral != nil {
			t.Errorf("%s: %d uses", f.name, uses)
		}
	}
}

func model(t *testing.T, text string) *manifest.Manifest {
	t.Helper()
	m := &manifest.Manifest{Vocab: 50, BOS: 3}
	if err := json.Unmarshal([]byte(text), &m.Generation); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestResolve(t *testing.T) {
	t.Parallel()
	builtIn := decode.Options{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, Penalty: 1.05, PenaltyWindow: 64}
	hot := Flags{Values: map[string]float64{"temperature": 1.5}}
	for _, c := range []struct {
		model string
		flags Flags
		quiet bool // generate
		want  decode.Options
	}{
		{`{}`, Flags{}, false, builtIn},
		{`{}`, Flags{}, true, decode.Options{}},
		{`{"eos_token_id": 2, "repetition_penalty": 1.2}`, Flags{}, true, decode.Options{Penalty: 1.2}},
		{`{}`, hot, true, decode.Options{Temperature: 1.5, TopK: 40, TopP: 0.95, MinP: 0.05}},
		{`{}`, Flags{Seeded: true}, true, builtIn},
		{`{}`, Flags{Values: map[string]float64{"temperature": 0}}, true, decode.Options{}},
		{`{"temperature": 0.6, "top_p": 0.9}`, Flags{}, true, decode.Options{Temperature: 0.6, TopK: 40, TopP: 0.9, MinP: 0.05}},
		{`{"temperature": 0.6, "top_p": 0.9}`, Flags{}, false, decode.Options{Temperature: 0.6, TopK: 40, TopP: 0.9, MinP: 0.05}},
		{`{"temperature": 0.6, "top_p": 0.9}`, hot, false, decode.Options{Temperature: 1.5, TopK: 40, TopP: 0.9, MinP: 0.05}},
		{`{"do_sample": true}`, Flags{}, true, builtIn},
		{`{"do_sample": true, "top_k": 0, "min_p": 0, "top_p": 1}`, Flags{}, false, decode.Options{Temperature: 0.8, TopP: 1}},
		{`{"do_sample": false, "temperature": 0.6, "top_p": 0.9}`, Flags{}, true, decode.Options{TopP: 0.9}},
		{`{"do_sample": false, "temperature": 0.6, "top_p": 0.9}`, Flags{}, false, decode.Options{TopK: 40, TopP: 0.9, MinP: 0.05}},
		{`{"do_sample": false, "temperature": 0.6}`, Flags{Seeded: true}, true, decode.Options{Temperature: 0.6, TopK: 40, TopP: 0.95, MinP: 0.05}},
		{`{"general.sampling.temp": 0.5, "general.sampling.top_k": 1, "general.sampling.penalty_repeat": 1.1, "general.sampling.penalty_last_n": 64}`, Flags{}, false,
			decode.Options{Temperature: 0.5, TopK: 1, TopP: 0.95, MinP: 0.05, Penalty: 1.1, PenaltyWindow: 64}},
		{`{"general.sampling.temp": 0.5, "temperature": 0.3}`, Flags{}, false, decode.Options{Temperature: 0.3, TopK: 40, TopP: 0.95, MinP: 0.05}},
		{`{"general.sampling.penalty_repeat": 1.1, "general.sampling.penalty_last_n": 0}`, Flags{}, true, decode.Options{}},
		{`{"typical_p": 0.9}`, Flags{}, false, decode.Options{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, Typical: 0.9}},
	} {
		config, err := Read(model(t, c.model), nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := config.Resolve(c.flags, c.quiet)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, r.Options); d != "" {
			t.Errorf("%s %+v quiet %t: %s", c.model, c.flags, c.quiet, d)
		}
	}
}

// TestMethod: a named method has parameters of its own, and who limits candidates or is
// greedy does not use that of the model.
func TestMethod(t *testing.T) {
	t.Parallel()
	mirostat := `{"general.sampling.mirostat": 2, "general.sampling.mirostat_tau": 4, "general.sampling.top_k": 20}`
	for _, c := range []struct {
		model, spec string
		flags       Flags
		want        string
	}{
		{`{}`, "", Flags{}, " 0.8/40"},
		{`{}`, "fsd", Flags{}, "fsd 1/0"},
		{`{"temperature": 0.7}`, "fsd", Flags{}, "fsd 0.7/0"},
		{`{}`, "fsd", Flags{Strategy: "top_k"}, "top_k 1/0"},
		{`{}`, "fsd", Flags{Values: map[string]float64{"top_k": 3}}, " 0.8/3"},
		{`{}`, "fsd", Flags{Values: map[string]float64{"temperature": 0}}, " 0/40"},
		{mirostat, "", Flags{}, "mirostat2:tau=4,eta=0.1 1/0"},
		{mirostat, "fsd", Flags{}, "fsd 1/0"},
	} {
		m := model(t, c.model)
		m.Engine.Strategy = c.spec
		config, err := Read(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := config.Resolve(c.flags, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %v/%d", r.Strategy, r.Temperature, r.TopK); got != c.want {
			t.Errorf("%s %s %+v: %s, expected %s", c.model, c.spec, c.flags, got, c.want)
		}
	}
}

// TestRules: fields without flags become rules.
func TestRules(t *testing.T) {
	t.Parallel()
	c, err := Read(model(t, `{"suppress_tokens": [4], "begin_suppress_tokens": 5, "bad_words_ids": [[6, 7]], "forced_eos_token_id": 2, "no_repeat_ngram_size": 3,
		"min_length": 9, "remove_invalid_values": true, "renormalize_logits": true, "exponential_decay_length_penalty": [10, 1.5], "sequence_bias": [[[8], -2.0]],
		"encoder_no_repeat_ngram_size": 2, "force_bos_token_to_be_generated": true, "stop_strings": "END", "max_length": 30, "num_beams": 4, "early_stopping": "never"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Resolve(Flags{}, true)
	if err != nil {
		t.Fatal(err)
	}
	want := decode.Rules{
		Suppress: []int32{4}, BeginSuppress: []int32{5}, BadWords: [][]int32{{6, 7}}, ForcedEOS: []int32{2}, NoRepeat: 3, MinLength: 9, Finite: true, Renormalize: true,
		Decay: decode.Decay{Start: 10, Factor: 1.5}, SequenceBias: []decode.Bias{{Tokens: []int32{8}, Value: -2}}, SourceRepeat: 2, ForcedBOS: []int32{3},
	}
	if d := cmp.Diff(want, r.Rules); d != "" {
		t.Error(d)
	}
	if c.Stop[0] != "END" || c.Stopping != decode.StopNever || c.Limit(nil, 10, 99) != 20 || c.Limit(nil, 31, 99) != 99 || c.Limit(new(7), 10, 99) != 7 {
		t.Errorf("%+v", c)
	}
	if old, err := Read(model(t, `{"max_length": 20}`), nil); err != nil || old.Limit(nil, 10, 99) != 99 || old.Whole("max_length", 0) != 0 {
		t.Errorf("the old default of max_length limits a text: %v", err)
	}
	if err := c.NoBeams("chat"); err == nil || !strings.Contains(err.Error(), "num_beams is 4: chat has no beam search; --ignore-setting num_beams") {
		t.Error(err)
	}
}

// TestRefused: what would change a text and cannot be honored is an error with the field
// and the way around it, where it matters.
func TestRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"penalty_alpha": 0.6}`:                      "generation_config.json penalty_alpha is 0.6: there is no contrastive search; --ignore-setting penalty_alpha",
		`{"guidance_scale": 1.5}`:                     "guidance_scale",
		`{"watermarking_config": {}}`:                 "watermarking_config",
		`{"force_words_ids": [[3]]}`:                  "force_words_ids",
		`{"max_time": 3}`:                             "max_time",
		`{"epsilon_cutoff": 0.001}`:                   "epsilon_cutoff",
		`{"general.sampling.xtc_probability": 0.5}`:   "GGUF general.sampling.xtc_probability is 0.5",
		`{"general.sampling.sequence": "top_k;temp"}`: "general.sampling.sequence",
		`{"temperature": "hot"}`:                      "generation_config.json temperature: hot: expected a number from 0 to 100; --ignore-setting temperature",
		`{"top_k": 1.5}`:                              "whole number",
		`{"suppress_tokens": ["a"]}`:                  "suppress_tokens: a: expected a token id",
		`{"do_sample": 1}`:                            "true or false",
		`{"stop_strings": [""]}`:                      "stop_strings",
		`{"bad_words_ids": [3]}`:                      "",
		`{"bad_words_ids": [[]]}`:                     "bad_words_ids",
		`{"early_stopping": "soon"}`:                  "early_stopping",
		`{"exponential_decay_length_penalty": [3]}`:   "[start, factor]",
		`{"sequence_bias": [[[1, 50], 1.0]]}`:         "token id 50: the vocabulary has 50 tokens",
		`{"forced_eos_token_id": [2, 50]}`:            "forced_eos_token_id: token id 50: the vocabulary has 50 tokens; --ignore-setting",
		`{"forced_bos_token_id": -1}`:                 "forced_bos_token_id: token id -1",
		`{"suppress_tokens": [-1, 50]}`:               "",
		`{"guidance_scale": 1.0, "num_beam_groups": 1, "penalty_alpha": 0, "constraints": [], "dola_layers": null, "use_cache": false, "epsilon_cutoff": 0}`: "",
	} {
		c, err := Read(model(t, text), nil)
		if err == nil {
			_, err = c.Resolve(Flags{}, false)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, expected %q", text, err, want)
		}
		if err == nil {
			continue
		}
		var all []string
		for name := range model(t, text).Generation {
			all = append(all, name)
		}
		if c, err = Read(model(t, text), all); err == nil {
			_, err = c.Resolve(Flags{}, false)
		}
		if err != nil {
			t.Errorf("%s, all ignored: %v", text, err)
		}
	}
	c, err := Read(model(t, `{"epsilon_cutoff": 0.001}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resolve(Flags{}, true); err != nil {
		t.Errorf("of a greedy text: %v", err)
	}
	if _, err := Read(model(t, `{}`), []string{"top_k"}); err == nil {
		t.Error("a field that the model does not have was ignored")
	}
}

// TestLines: --verbose says where each value is from.
func TestLines(t *testing.T) {
	t.Parallel()
	m := model(t, `{"top_p": 0.9, "suppress_tokens": [1], "general.sampling.min_p": 0.1, "max_new_tokens": 99, "chat_format": "x", "use_cache": true, "max_length": 20}`)
	c, err := Read(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Resolve(Flags{Values: map[string]float64{"top_k": 5}, Names: map[string]string{"top_k": "--top-k"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"temperature 0.8 (built-in default)", "top_k 5 (--top-k)", "top_p 0.9 (generation_config.json top_p)", "min_p 0.1 (GGUF general.sampling.min_p)",
		"suppress_tokens (generation_config.json suppress_tokens)", "max_new_tokens 99 (generation_config.json max_new_tokens)",
		"chat_format (generation_config.json chat_format) is unknown and has no effect",
		"max_length 20 (generation_config.json max_length) is the old default of transformers and has no effect",
	}
	if !slices.Equal(r.Lines(), want) {
		t.Errorf("%q", r.Lines())
	}
}

// TestFromGGUF: values are those of JSON, however wide the file has its numbers.
func TestFromGGUF(t *testing.T) {
	t.Parallel()
	got := FromGGUF(map[string]any{gguf + "temp": float32(0.95), gguf + "top_k": uint32(40), gguf + "penalty_last_n": int32(-1), gguf + "sequence": "k", gguf + "min_p": float32(math.NaN()), gguf + "x": []float64{math.Inf(1)}, "general.name": "x"})
	want := map[string]any{gguf + "temp": 0.95, gguf + "top_k": 40.0, gguf + "penalty_last_n": -1.0, gguf + "sequence": "k", gguf + "min_p": "NaN", gguf + "x": "[+Inf]"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
