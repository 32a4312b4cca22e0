//go:build unix

package server

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// unsupported lists keys of OpenAI, vLLM, llama.cpp and other servers that would change
// the answer and that iflowc does not implement. A request that sets one is refused
// unless the value is neutral: null, or one in the tag "neutral". The tag "use" names
// an alternative. Keys in no table are ignored.
//
// A request type that supports a key of this table shadows it with a field of its own.
type unsupported struct {
	AdaptiveTarget   json.RawMessage `json:"adaptive_target" neutral:"-1"`
	AllowedTokens    json.RawMessage `json:"allowed_token_ids" use:"guided_choice or guided_grammar"`
	BadWordTexts     json.RawMessage `json:"bad_words" neutral:"[]" use:"bad_words_ids"`
	BeamSearch       json.RawMessage `json:"use_beam_search" neutral:"false" use:"\"strategy\": \"beam\""`
	BestOf           json.RawMessage `json:"best_of" neutral:"1" use:"n"`
	ChatTemplate     json.RawMessage `json:"chat_template" neutral:"\"\""`
	Choices          json.RawMessage `json:"n_cmpl" neutral:"1" use:"n"`
	DoSample         json.RawMessage `json:"do_sample" neutral:"true" use:"\"temperature\": 0"`
	DryMultiplier    json.RawMessage `json:"dry_multiplier" neutral:"0" use:"no_repeat_ngram_size or repetition_penalty"`
	DynamicRange     json.RawMessage `json:"dynatemp_range" neutral:"0"`
	EarlyStopping    json.RawMessage `json:"early_stopping" neutral:"false" use:"the beam strategy's early_stopping"`
	EncoderPenalty   json.RawMessage `json:"encoder_repetition_penalty" neutral:"1|0"`
	EpsilonCutoff    json.RawMessage `json:"epsilon_cutoff" neutral:"0"`
	EtaCutoff        json.RawMessage `json:"eta_cutoff" neutral:"0"`
	GrammarLazy      json.RawMessage `json:"grammar_lazy" neutral:"false"`
	GrammarTriggers  json.RawMessage `json:"grammar_triggers" neutral:"[]"`
	Indent           json.RawMessage `json:"n_indent" neutral:"0"`
	KeepStop         json.RawMessage `json:"include_stop_str_in_output" neutral:"false"`
	LengthPenalty    json.RawMessage `json:"length_penalty" neutral:"1" use:"the beam strategy's length_penalty"`
	LogitsProcessors json.RawMessage `json:"logits_processors" neutral:"[]"`
	LogprobTokens    json.RawMessage `json:"logprob_token_ids"`
	Lora             json.RawMessage `json:"lora" neutral:"[]"`
	MaxLength        json.RawMessage `json:"max_length" use:"max_tokens"`
	MaxNewTokens     json.RawMessage `json:"max_new_tokens" use:"max_tokens"`
	MaxOutputTokens  json.RawMessage `json:"max_output_tokens" use:"max_tokens"`
	MinKeep          json.RawMessage `json:"min_keep" neutral:"0|1"`
	NumBeams         json.RawMessage `json:"num_beams" neutral:"1" use:"\"strategy\": \"beam:beams=4\""`
	PenaltyAlpha     json.RawMessage `json:"penalty_alpha" neutral:"0"`
	Predict          json.RawMessage `json:"n_predict" neutral:"-1" use:"max_tokens"`
	PredictTime      json.RawMessage `json:"t_max_predict_ms" neutral:"0|-1"`
	Probs            json.RawMessage `json:"n_probs" neutral:"0" use:"logprobs"`
	ProbsAfter       json.RawMessage `json:"post_sampling_probs" neutral:"false"`
	PromptLogprobs   json.RawMessage `json:"prompt_logprobs" use:"echo with logprobs at /v1/completions"`
	RandomSeed       json.RawMessage `json:"random_seed" use:"seed"`
	Repetition       json.RawMessage `json:"repetition_detection"`
	Samplers         json.RawMessage `json:"samplers" neutral:"[]|\"\""`
	Smoothing        json.RawMessage `json:"smoothing_factor" neutral:"0"`
	SkipSpecial      json.RawMessage `json:"skip_special_tokens" neutral:"true"`
	StopSequences    json.RawMessage `json:"stop_sequences" neutral:"[]" use:"stop"`
	TokenIDs         json.RawMessage `json:"return_token_ids" neutral:"false"`
	TokensAsIDs      json.RawMessage `json:"return_tokens_as_token_ids" neutral:"false"`
	TopA             json.RawMessage `json:"top_a" neutral:"0"`
	TopNSigma        json.RawMessage `json:"top_n_sigma" neutral:"-1|0"`
	TruncatePrompt   json.RawMessage `json:"truncate_prompt_tokens" use:"a shorter prompt"`
	Watermarking     json.RawMessage `json:"watermarking" neutral:"false"`
	XArgs            json.RawMessage `json:"vllm_xargs" neutral:"{}"`
	XTCProbability   json.RawMessage `json:"xtc_probability" neutral:"0" use:"top_p, min_p or typical_p"`
}

// unsupportedChat lists further unsupported keys of chat completions.
type unsupportedChat struct {
	AddSpecial       json.RawMessage `json:"add_special_tokens" neutral:"false"`
	Audio            json.RawMessage `json:"audio"`
	Echo             json.RawMessage `json:"echo" neutral:"false"`
	FunctionCall     json.RawMessage `json:"function_call" neutral:"\"auto\"|\"none\"" use:"tool_choice"`
	IncludeReasoning json.RawMessage `json:"include_reasoning" neutral:"true"`
	Instructions     json.RawMessage `json:"instructions" neutral:"\"\"" use:"a message of the role system"`
	MediaOptions     json.RawMessage `json:"mm_processor_kwargs" neutral:"{}"`
	Modalities       json.RawMessage `json:"modalities" neutral:"[]|[\"text\"]"`
	ReasoningFormat  json.RawMessage `json:"reasoning_format" neutral:"\"auto\"|\"deepseek\""`
	Suffix           json.RawMessage `json:"suffix" neutral:"\"\""`
	Text             json.RawMessage `json:"text" use:"response_format"`
	ThinkingOpen     json.RawMessage `json:"thinking_forced_open" neutral:"false"`
	Verbosity        json.RawMessage `json:"verbosity" neutral:"\"medium\""`
	WebSearch        json.RawMessage `json:"web_search_options"`
}

// unsupportedText lists further unsupported keys of completions.
type unsupportedText struct {
	AddSpecial json.RawMessage `json:"add_special_tokens" neutral:"true"`
}

// withoutEffect lists keys of other servers that do not change the answer.
type withoutEffect struct {
	CacheKey       json.RawMessage `json:"prompt_cache_key"`       // accepted without effect: prefixes are always cached
	CachePrompt    json.RawMessage `json:"cache_prompt"`           // accepted without effect: prefixes are always cached
	CacheRetention json.RawMessage `json:"prompt_cache_retention"` // accepted without effect
	Metadata       json.RawMessage `json:"metadata"`               // accepted without effect
	Prediction     json.RawMessage `json:"prediction"`             // accepted without effect: speculate selects a drafting method
	Slot           json.RawMessage `json:"id_slot"`                // accepted without effect
	Store          json.RawMessage `json:"store"`                  // accepted without effect: only responses are stored
	Tier           json.RawMessage `json:"service_tier"`           // accepted without effect
	Timings        json.RawMessage `json:"timings_per_token"`      // accepted without effect
}

// refuseUnsupported returns an error for the first key in tables with a value that is
// not neutral.
func refuseUnsupported(tables ...any) error {
	for _, table := range tables {
		v := reflect.ValueOf(table)
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if isNeutral(v.Field(i).Bytes(), f.Tag.Get("neutral")) {
				continue
			}
			key, advice := f.Tag.Get("json"), "leave it out"
			if use := f.Tag.Get("use"); use != "" {
				advice += ", or use " + use
			}
			return invalid(key, "%s is not supported by this service; %s", key, advice)
		}
	}
	return nil
}

// isNeutral reports whether a value is absent, null, or one of the values in list,
// separated by "|".
func isNeutral(data []byte, list string) bool {
	if len(data) == 0 || string(data) == "null" {
		return true
	}
	var compact bytes.Buffer
	if json.Compact(&compact, data) != nil {
		return false
	}
	value, number := compact.String(), toNumber(compact.String())
	for neutral := range strings.SplitSeq(list, "|") {
		if value == neutral || number == toNumber(neutral) {
			return true
		}
	}
	return false
}

// toNumber reads a number; NaN, which equals nothing: it is none.
func toNumber(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}
