//go:build unix

package server

import (
	"encoding/json"
	"maps"
	"slices"
)

// Limits of request fields. docs/security.md documents them.
const (
	maxStops     = 16
	maxStopBytes = 1024 // bytes of each; every token is searched for all of them
	maxStopIDs   = 128
	maxChoices   = 128
	maxBiases    = 1024
	maxBadWords  = 1024
	maxBadWord   = 64 // tokens of each
	maxRepeat    = 32 // no_repeat_ngram_size
	maxTokens    = 1 << 30
	maxRanked    = 20 // top_logprobs
	maxName      = 256
	maxStrategy  = 1024

	maxMessages      = 4096
	maxRole          = 64
	maxTools         = 128
	maxToolName      = 128
	maxToolBytes     = 256 << 10
	maxVariables     = 16 << 10 // bytes of chat_template_kwargs
	maxVariableDepth = 16
	maxTemplate      = 16 << 10 // bytes of decoder_input_template
)

// A bound is a number of a request with its range.
type bound struct {
	param    string
	value    *float64
	from, to float64
}

// inRange returns an error for a number outside its range.
func inRange(list []bound) error {
	for _, b := range list {
		if b.value != nil && !(*b.value >= b.from && *b.value <= b.to) {
			return invalid(b.param, "%s: expected a number between %v and %v", b.param, b.from, b.to)
		}
	}
	return nil
}

// check validates the values that the sampler does not check, and bounds those that
// cost time.
func (p *sampling) check() error {
	if err := inRange([]bound{
		{"temperature", p.Temperature, 0, 100}, {"top_p", p.TopP, 0, 1}, {"min_p", p.MinP, 0, 1}, {"typical_p", p.TypicalP, 0, 1}, {"tfs_z", &p.TfsZ, 0, 1},
		{"frequency_penalty", &p.FrequencyPenalty, -2, 2}, {"presence_penalty", &p.PresencePenalty, -2, 2},
		{"mirostat_tau", p.MirostatTau, 0, 100}, {"mirostat_eta", p.MirostatEta, 0, 100},
	}); err != nil {
		return err
	}
	for param, v := range map[string]*float64{"repetition_penalty": p.RepetitionPenalty, "repeat_penalty": p.RepeatPenalty} {
		if v != nil && *v != 0 && !(*v >= 0.01 && *v <= 100) {
			return invalid(param, "%s: expected a number between 0.01 and 100, or 0 for none", param)
		}
	}
	switch {
	case p.TopK != nil && (*p.TopK < -1 || *p.TopK > maxTokens):
		return invalid("top_k", "top_k: expected a number between 1 and %d, or -1 or 0 for all tokens", maxTokens)
	case p.choices() < 1 || p.choices() > maxChoices:
		return invalid("n", "n: expected a number between 1 and %d", maxChoices)
	case or(p.MinTokens, 0) < 0 || or(p.MinTokens, 0) > maxTokens:
		return invalid("min_tokens", "min_tokens: expected a number between 0 and %d", maxTokens)
	case or(p.NoRepeatNgram, 0) < 0 || or(p.NoRepeatNgram, 0) > maxRepeat:
		return invalid("no_repeat_ngram_size", "no_repeat_ngram_size: expected a number between 1 and %d, or 0 for none", maxRepeat)
	case len(p.Strategy) > maxStrategy:
		return invalid("strategy", "strategy: expected at most %d bytes", maxStrategy)
	case p.Mirostat != 0 && len(p.Strategy) > 0 && string(p.Strategy) != "null":
		return invalid("strategy", "strategy and mirostat both set the sampling method; leave one out")
	case len(p.Speculate) > maxName:
		return invalid("speculate", "speculate: expected at most %d bytes", maxName)
	case len(p.DraftAccept) > maxName:
		return invalid("draft_accept", "draft_accept: expected at most %d bytes", maxName)
	case p.RepeatLastN != nil && (*p.RepeatLastN < -1 || *p.RepeatLastN > maxTokens):
		return invalid("repeat_last_n", "repeat_last_n: expected a number between 1 and %d, 0 for no penalty, or -1 for the whole text", maxTokens)
	}
	return p.checkLists()
}

// checkLists bounds the lists that are scanned for each token.
func (p *sampling) checkLists() error {
	long := func(text string) bool { return len(text) > maxStopBytes }
	switch {
	case len(p.Stop) > maxStops || slices.Contains(p.Stop, "") || slices.ContainsFunc(p.Stop, long):
		return invalid("stop", "stop: expected at most %d texts of 1 to %d bytes each", maxStops, maxStopBytes)
	case len(p.StopIDs) > maxStopIDs:
		return invalid("stop_token_ids", "stop_token_ids: expected at most %d tokens", maxStopIDs)
	case len(p.LogitBias) > maxBiases:
		return invalid("logit_bias", "logit_bias: expected at most %d tokens", maxBiases)
	case len(p.BadWords) > maxBadWords:
		return invalid("bad_words_ids", "bad_words_ids: expected at most %d lists", maxBadWords)
	}
	for i, word := range p.BadWords {
		if len(word) == 0 || len(word) > maxBadWord {
			return invalid("bad_words_ids", "bad_words_ids[%d]: expected between 1 and %d tokens", i, maxBadWord)
		}
	}
	return nil
}

// checkMinTokens compares min_tokens with the requested limit.
func (p *sampling) checkMinTokens(limit *int) error {
	if limit != nil && *limit >= 0 && or(p.MinTokens, 0) > *limit {
		return invalid("min_tokens", "min_tokens: %d is more than the maximum number of tokens, %d", *p.MinTokens, *limit)
	}
	return nil
}

// variables holds variables of a chat template.
type variables map[string]any

// or returns the variables with one more, unless they have it.
func (v variables) or(name string, value any) variables {
	all := variables{name: value}
	maps.Copy(all, v)
	return all
}

// UnmarshalJSON decodes an object within the limits.
func (v *variables) UnmarshalJSON(data []byte) error {
	const param = "chat_template_kwargs"
	if len(data) > maxVariables || depth(data) > maxVariableDepth {
		return invalid(param, "%s: expected at most %d bytes, nested at most %d deep", param, maxVariables, maxVariableDepth)
	}
	var m map[string]any
	if json.Unmarshal(data, &m) != nil {
		return invalid(param, "%s: expected an object", param)
	}
	for _, name := range []string{"messages", "tools", "chat_template", "tokenize"} {
		if _, ok := m[name]; ok {
			return invalid(param, "%s: %s cannot be set here", param, name)
		}
	}
	*v = m
	return nil
}
