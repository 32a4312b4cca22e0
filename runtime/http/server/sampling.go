//go:build unix

package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/settings"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
	"github.com/iflowc/iflowc/runtime/text/grammar"
)

// Defaults are the values of keys that a request leaves out.
type Defaults struct {
	decode.Settings          // its slices must not change
	OwnPenalty      bool     // the repetition penalty is that of requests which say nothing of sampling
	MaxTokens       int      // 0: the rest of the context
	MaxLength       int      // maximum tokens of a prompt and its answer; 0: the context
	ReasoningBudget *int     // maximum number of tokens of reasoning; nil or -1: no limit
	Stop            []string // texts that end every answer
	EOS             []int32
}

// sampling holds the sampling keys of a request: OpenAI's and those of other servers.
type sampling struct {
	shared
	structured
	Temperature       *float64           `json:"temperature"`          // softmax temperature; 0: greedy decoding; default 0.8, or the model's own
	TopP              *float64           `json:"top_p"`                // nucleus sampling: keep the most probable tokens whose probabilities add up to this
	TopK              *int               `json:"top_k"`                // keep the K most probable tokens; 0 or -1: all
	MinP              *float64           `json:"min_p"`                // keep tokens at least this times as probable as the most probable one
	TypicalP          *float64           `json:"typical_p"`            // locally typical sampling: probability mass to keep; 0 or 1: off
	TfsZ              float64            `json:"tfs_z"`                // tail-free sampling parameter z; 0: off
	RepeatLastN       *int               `json:"repeat_last_n"`        // number of last tokens that the penalties count; 0: no penalty; default -1: all
	Mirostat          int                `json:"mirostat"`             // Mirostat version, 1 or 2; 0: off
	MirostatTau       *float64           `json:"mirostat_tau"`         // Mirostat target surprise, in bits
	MirostatEta       *float64           `json:"mirostat_eta"`         // Mirostat learning rate
	Strategy          json.RawMessage    `json:"strategy"`             // sampling method by name, with parameters after a colon or as an object: "fsd:k=4,alpha=0.4", "beam:beams=4"
	FrequencyPenalty  float64            `json:"frequency_penalty"`    // subtracted from a logit for each time the token was generated
	PresencePenalty   float64            `json:"presence_penalty"`     // subtracted from the logits of tokens that were generated
	RepetitionPenalty *float64           `json:"repetition_penalty"`   // divides positive and multiplies negative logits of tokens in the text
	RepeatPenalty     *float64           `json:"repeat_penalty"`       // llama.cpp's name of repetition_penalty
	NoRepeatNgram     *int               `json:"no_repeat_ngram_size"` // no sequence of this many tokens occurs twice; 0: off
	BadWords          [][]int32          `json:"bad_words_ids"`        // token sequences that are never generated
	LogitBias         map[string]float64 `json:"logit_bias"`           // token id to a number that is added to its logit
	Seed              *int64             `json:"seed"`                 // seed of the random numbers; default: a random one per request
	Stop              stops              `json:"stop"`                 // generation ends before one of these texts
	StopIDs           []int32            `json:"stop_token_ids"`       // generation ends at one of these tokens
	IgnoreEOS         bool               `json:"ignore_eos"`           // continue after the end-of-text token
	MinTokens         *int               `json:"min_tokens"`           // no end-of-text token before this many tokens
	N                 *int               `json:"n"`                    // number of choices; default 1
	Speculate         string             `json:"speculate"`            // drafting method: "none", "lookup", "draft", "medusa" or "auto"
	DraftAccept       string             `json:"draft_accept"`         // acceptance rule for drafts: "match", "rejection", "top" or "typical"
}

// stops is a text or a list of texts.
type stops []string

// UnmarshalJSON accepts null, a string or a list of strings.
func (s *stops) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		if *s = nil; string(data) != "null" {
			*s = stops{one}
		}
		return nil
	}
	var many []string
	if json.Unmarshal(data, &many) != nil {
		return invalid("stop", "stop: expected a string or a list of strings")
	}
	*s = many
	return nil
}

func (p *sampling) choices() int {
	if p.N == nil {
		return 1
	}
	return *p.N
}

// eos returns the tokens that end an answer; own are the model's.
func (p *sampling) eos(own []int32) []int32 {
	list := slices.Clone(p.StopIDs)
	if !p.IgnoreEOS {
		list = append(list, own...)
	}
	return list
}

// settings returns the settings that the samplers of a request share. Structured output,
// which is constrained, repeats marks and names, and ends by itself.
func (s *Server) settings(p *sampling, eos []int32, constrained bool) (decode.Settings, error) {
	set := s.cfg.Defaults.Settings
	if s.cfg.Defaults.OwnPenalty && (constrained || p.draws() || p.penalizes()) {
		set.Penalty, set.PenaltyWindow = 0, 0
	}
	set.Temperature, set.MinP, set.Typical = or(p.Temperature, set.Temperature), or(p.MinP, set.MinP), or(p.TypicalP, set.Typical)
	set.TopK = max(0, or(p.TopK, set.TopK)) // -1 also means all tokens
	if p.TopP != nil {
		set.TopP = settings.Share(*p.TopP)
	}
	if p.TfsZ != 0 {
		set.TailFree = p.TfsZ
	}
	set.Penalty = or(p.RepetitionPenalty, or(p.RepeatPenalty, set.Penalty))
	set.Frequency, set.Presence = p.FrequencyPenalty, p.PresencePenalty
	if p.RepeatLastN != nil {
		set.PenaltyWindow = max(*p.RepeatLastN, 0)
	}
	if or(p.RepeatLastN, -1) == 0 {
		set.Penalty, set.Frequency, set.Presence = 0, 0, 0
	}
	set.Rules.EOS = eos
	set.Rules.NoRepeat = or(p.NoRepeatNgram, set.Rules.NoRepeat)
	if p.BadWords != nil {
		set.Rules.BadWords = p.BadWords
	}
	if p.MinTokens != nil {
		set.Rules.MinNew, set.Rules.MinLength = *p.MinTokens, 0
	}
	return set, s.setMethod(&set, p)
}

// draws reports whether a request says how tokens are drawn.
func (p *sampling) draws() bool {
	return p.Temperature != nil || p.cuts() || p.Mirostat != 0 || len(p.Strategy) > 0
}

// cuts reports whether a request limits the candidates.
func (p *sampling) cuts() bool {
	return p.TopK != nil || p.TopP != nil || p.MinP != nil || p.TypicalP != nil || p.TfsZ != 0
}

// penalizes reports whether a request has a penalty.
func (p *sampling) penalizes() bool {
	return p.RepetitionPenalty != nil || p.RepeatPenalty != nil || p.RepeatLastN != nil || p.FrequencyPenalty != 0 || p.PresencePenalty != 0
}

// setMethod sets the sampling method of a request, and what else may be invalid. A
// request that limits the candidates, or is greedy, does not use the default method.
func (s *Server) setMethod(set *decode.Settings, p *sampling) (err error) {
	if set.Bias, err = s.bias(p.LogitBias); err != nil {
		return err
	}
	if set.Rule, err = decode.ParseRule(p.DraftAccept); err != nil {
		return invalid("draft_accept", "draft_accept: %v", err)
	}
	name, err := p.strategy()
	if err != nil {
		return err
	}
	if name != "" || p.cuts() || p.Temperature != nil && *p.Temperature == 0 {
		set.Strategy = name
	}
	if set.Strategy != "" && !p.cuts() {
		set.TopK, set.TopP, set.MinP, set.Typical, set.TailFree = 0, 0, 0, 0, 0
	}
	return nil
}

// strategy returns the request's strategy with its parameters, in the form that
// decode.NewSampler parses.
func (p *sampling) strategy() (string, error) {
	switch p.Mirostat {
	case 0:
	case 1, 2:
		list := ""
		if p.MirostatTau != nil {
			list += fmt.Sprintf(",tau=%v", *p.MirostatTau)
		}
		if p.MirostatEta != nil {
			list += fmt.Sprintf(",eta=%v", *p.MirostatEta)
		}
		return strings.TrimSuffix(fmt.Sprintf("mirostat%d:%s", p.Mirostat, strings.TrimPrefix(list, ",")), ":"), nil
	default:
		return "", invalid("mirostat", "mirostat: expected 0, 1 or 2")
	}
	return strategyName(p.Strategy)
}

// strategyName parses "name:a=1,b=2" or {"name": …, "a": 1, "b": 2}.
func strategyName(data json.RawMessage) (string, error) {
	var name string
	if len(data) == 0 || json.Unmarshal(data, &name) == nil {
		return name, nil
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return "", invalid("strategy", "strategy: expected a name, or an object with a name and parameters")
	}
	name, ok := object["name"].(string)
	if !ok {
		return "", invalid("strategy", "strategy: the object has no name")
	}
	delete(object, "name")
	var list []string
	for _, k := range slices.Sorted(maps.Keys(object)) {
		v, ok := object[k].(float64)
		if !ok {
			return "", invalid("strategy", "strategy: %s: expected a number", k)
		}
		list = append(list, k+"="+strconv.FormatFloat(v, 'g', -1, 64))
	}
	if len(list) > 0 {
		name += ":" + strings.Join(list, ",")
	}
	return name, nil
}

// bias parses logit_bias, an object with token ids as keys.
func (s *Server) bias(m map[string]float64) (map[int32]float32, error) {
	if len(m) == 0 {
		return nil, nil
	}
	out := make(map[int32]float32, len(m))
	for key, v := range m {
		id, err := strconv.Atoi(key)
		if err != nil || id < 0 || id >= s.cfg.Manifest.Vocab {
			return nil, invalid("logit_bias", "logit_bias: %.40q is not a token id; the vocabulary has %d tokens", key, s.cfg.Manifest.Vocab)
		}
		if v < -100 || v > 100 {
			return nil, invalid("logit_bias", "logit_bias: %v: expected a number between -100 and 100", v)
		}
		out[int32(id)] = float32(v)
	}
	return out, nil
}

// samplers returns one sampler per choice.
func (s *Server) samplers(r *http.Request, p *sampling, g generation, limit int) ([]*decode.Sampler, error) {
	set, err := s.settings(p, g.eos, g.constraint != nil)
	if err != nil {
		return nil, err
	}
	set.Rules.MaxLength = len(g.ids) + limit
	seed := rand.Uint64()
	if p.Seed != nil {
		seed = uint64(*p.Seed)
	}
	list := make([]*decode.Sampler, p.choices())
	for i := range list {
		set.Seed, set.Mask = seed+uint64(i), nil
		if c := g.constraint; c != nil {
			if s.cfg.Constrain == nil {
				return nil, invalid(c.Key, "%s: structured output (%s) is not supported by this service", c.Key, c.Kind)
			}
			if set.Mask, err = s.constrain(r, *c); err != nil {
				return nil, err
			}
		}
		if g.reasoning != nil {
			set.Mask = g.reasoning().Then(set.Mask)
		}
		if list[i], err = decode.NewSampler(set, len(g.ids)); err != nil {
			return nil, invalid(samplerParam(set), "%v", err)
		}
	}
	return list, nil
}

// constrain returns the token mask of a choice.
func (s *Server) constrain(r *http.Request, c Constraint) (m decode.Mask, err error) {
	c.Scope = s.scope(callerOf(r))
	if err := s.work(r, func(func() error) error {
		m, err = s.cfg.Constrain(c)
		return nil
	}); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, invalid(c.Key, "%s: %v", c.Key, err)
	}
	if g, ok := m.(*grammar.Matcher); ok {
		if err := s.take(r, c.Key, g.Size()); err != nil {
			return nil, err
		}
		for _, text := range g.Warnings() {
			warn(r, text)
		}
		g.FindBy(func(work func(tick func() error) error) error { return s.work(r, work) })
	}
	return m, nil
}

// samplerParam returns the key that an error of decode.NewSampler is about.
func samplerParam(set decode.Settings) string {
	if set.Strategy != "" {
		return "strategy"
	}
	if set.Rule != decode.Match {
		return "draft_accept"
	}
	return ""
}

// or returns *v, or otherwise if v is nil.
func or[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}

// drafter returns the function that creates the drafters of a request's choices, or
// nil.
func (s *Server) drafter(p *sampling) (func() speculate.Drafter, error) {
	if s.cfg.Drafter == nil {
		if p.Speculate != "" && p.Speculate != "none" {
			return nil, invalid("speculate", "speculate: speculative decoding is disabled in this service")
		}
		return nil, nil
	}
	make, err := s.cfg.Drafter(p.Speculate)
	if err != nil {
		return nil, invalid("speculate", "speculate: %v", err)
	}
	return make, nil
}
