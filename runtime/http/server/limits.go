//go:build unix

package server

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/text/chat"
)

// Most values of lists in a request, and most bytes of what it names.
// docs/security.md lists them with all others.
const (
	mostStops     = 16
	mostStopBytes = 1024 // of each; a token's text is searched for all of them
	mostStopIDs   = 128
	mostChoices   = 128
	mostBiases    = 1024
	mostBadWords  = 1024
	mostBadWord   = 64 // tokens of each
	mostRepeat    = 32 // no_repeat_ngram_size
	mostTokens    = 1 << 30
	mostRanked    = 20 // top_logprobs
	mostName      = 256
	mostStrategy  = 1024

	mostMessages  = 4096
	mostRole      = 64
	mostTools     = 128
	mostToolBytes = 256 << 10
	mostVariables = 16 << 10 // bytes of chat_template_kwargs
	deepVariables = 16
	mostTemplate  = 16 << 10 // bytes of decoder_input_template
)

// A bound is a number of a request with the least and the largest value.
type bound struct {
	param    string
	value    *float64
	from, to float64
}

// inRange checks numbers.
func inRange(list []bound) error {
	for _, b := range list {
		if b.value != nil && !(*b.value >= b.from && *b.value <= b.to) {
			return invalid(b.param, "%s: expected a number between %v and %v", b.param, b.from, b.to)
		}
	}
	return nil
}

// check refuses what no strategy looks at, and what would take too long.
func (p *sampling) check() error {
	if err := inRange([]bound{
		{"temperature", p.Temperature, 0, 100}, {"top_p", p.TopP, 0, 1}, {"min_p", p.MinP, 0, 1}, {"typical_p", &p.TypicalP, 0, 1}, {"tfs_z", &p.TfsZ, 0, 1},
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
	case p.TopK != nil && (*p.TopK < -1 || *p.TopK > mostTokens):
		return invalid("top_k", "top_k: expected a number between 1 and %d, or -1 or 0 for all tokens", mostTokens)
	case p.choices() < 1 || p.choices() > mostChoices:
		return invalid("n", "n: expected a number between 1 and %d", mostChoices)
	case p.MinTokens < 0 || p.MinTokens > mostTokens:
		return invalid("min_tokens", "min_tokens: expected a number between 0 and %d", mostTokens)
	case p.NoRepeatNgram < 0 || p.NoRepeatNgram > mostRepeat:
		return invalid("no_repeat_ngram_size", "no_repeat_ngram_size: expected a number between 1 and %d, or 0 for none", mostRepeat)
	case len(p.Strategy) > mostStrategy:
		return invalid("strategy", "strategy: expected at most %d bytes", mostStrategy)
	case p.Mirostat != 0 && len(p.Strategy) > 0 && string(p.Strategy) != "null":
		return invalid("strategy", "strategy and mirostat both say how tokens are picked; leave one out")
	case len(p.Speculate) > mostName:
		return invalid("speculate", "speculate: expected at most %d bytes", mostName)
	case len(p.DraftAccept) > mostName:
		return invalid("draft_accept", "draft_accept: expected at most %d bytes", mostName)
	case p.RepeatLastN != nil && *p.RepeatLastN != -1 && p.repeats():
		return invalid("repeat_last_n", "repeat_last_n: a repetition penalty counts the whole text here; leave it out, or give -1")
	}
	return p.checkLists()
}

// repeats says that the request asks for a repetition penalty.
func (p *sampling) repeats() bool {
	v := or(p.RepetitionPenalty, or(p.RepeatPenalty, 1))
	return v != 0 && v != 1
}

// checkLists bounds the lists that are gone through for each token.
func (p *sampling) checkLists() error {
	long := func(text string) bool { return len(text) > mostStopBytes }
	switch {
	case len(p.Stop) > mostStops || slices.Contains(p.Stop, "") || slices.ContainsFunc(p.Stop, long):
		return invalid("stop", "stop: expected at most %d texts of 1 to %d bytes each", mostStops, mostStopBytes)
	case len(p.StopIDs) > mostStopIDs:
		return invalid("stop_token_ids", "stop_token_ids: expected at most %d tokens", mostStopIDs)
	case len(p.LogitBias) > mostBiases:
		return invalid("logit_bias", "logit_bias: expected at most %d tokens", mostBiases)
	case len(p.BadWords) > mostBadWords:
		return invalid("bad_words_ids", "bad_words_ids: expected at most %d lists", mostBadWords)
	}
	for i, word := range p.BadWords {
		if len(word) == 0 || len(word) > mostBadWord {
			return invalid("bad_words_ids", "bad_words_ids[%d]: expected between 1 and %d tokens", i, mostBadWord)
		}
	}
	return nil
}

// checkMinTokens compares min_tokens with the limit that was asked for.
func (p *sampling) checkMinTokens(limit *int) error {
	if limit != nil && *limit >= 0 && p.MinTokens > *limit {
		return invalid("min_tokens", "min_tokens: %d is more than max_tokens, %d", p.MinTokens, *limit)
	}
	return nil
}

// variables are more variables of a chat template.
type variables map[string]any

// UnmarshalJSON reads an object within bounds.
func (v *variables) UnmarshalJSON(data []byte) error {
	const param = "chat_template_kwargs"
	if len(data) > mostVariables || depth(data) > deepVariables {
		return invalid(param, "%s: expected at most %d bytes, nested at most %d deep", param, mostVariables, deepVariables)
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

// checkMessages bounds messages and makes one text of a list of texts: few
// templates know lists.
func checkMessages(list []chat.Message) error {
	switch {
	case len(list) == 0:
		return invalid("messages", "messages: expected at least one message")
	case len(list) > mostMessages:
		return invalid("messages", "messages: expected at most %d messages", mostMessages)
	}
	for i := range list {
		if err := checkMessage(&list[i], i); err != nil {
			return err
		}
	}
	return nil
}

// checkMessage refuses what the model cannot read.
func checkMessage(m *chat.Message, i int) error {
	at := fmt.Sprintf("messages[%d]", i)
	switch {
	case m.Role == "":
		return invalid("messages", "%s has no role", at)
	case len(m.Role) > mostRole:
		return invalid("messages", "%s.role: expected at most %d bytes", at, mostRole)
	case len(m.Name) > mostName || len(m.ToolCallID) > mostName:
		return invalid("messages", "%s: name and tool_call_id: expected at most %d bytes", at, mostName)
	case len(m.ToolCalls) > mostTools:
		return invalid("messages", "%s.tool_calls: expected at most %d calls", at, mostTools)
	}
	for k := range m.ToolCalls {
		if err := checkToolName("messages", fmt.Sprintf("%s.tool_calls[%d]", at, k), m.ToolCalls[k].Function.Name); err != nil {
			return err
		}
	}
	parts, ok := m.Content.([]chat.Part)
	if !ok {
		return nil
	}
	for k, data := range parts {
		var part struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		}
		if err := json.Unmarshal(data, &part); err != nil || part.Type != "text" || part.Text == nil {
			return invalid("messages", "%s.content[%d]: type %.40q; this model reads parts of type \"text\" alone", at, k, part.Type)
		}
	}
	m.Content = m.Text()
	return nil
}

// checkToolName refuses names that stand for no function.
func checkToolName(param, at, name string) error {
	if name == "" || len(name) > mostRole {
		return invalid(param, "%s: the function's name: expected between 1 and %d bytes", at, mostRole)
	}
	return nil
}
