//go:build unix

package server

import (
	"encoding/json"

	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/text/chat"
)

// reasoningKeys are the keys of a request that limit its reasoning.
type reasoningKeys struct {
	ThinkingBudget  *int `json:"thinking_token_budget"`   // maximum number of tokens of reasoning, after which the answer begins; 0: no reasoning; -1: no limit
	ReasoningBudget *int `json:"reasoning_budget_tokens"` // llama.cpp's name of thinking_token_budget
}

// efforts are the budgets of reasoning_effort for models whose template has no such
// variable. They are those that Google's API has for models with budgets.
var efforts = map[string]int{"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": -1, "max": -1}

// reason resolves what a request says of reasoning: it sets the variables of the
// template, and the budget.
func (s *Server) reason(r *chatRequest) error {
	on, err := r.reasons()
	if err != nil {
		return err
	}
	asked, err := r.askedBudget()
	if err != nil {
		return err
	}
	budget := or(s.cfg.Defaults.ReasoningBudget, -1)
	if budget == 0 && or(on, false) {
		budget = -1
	}
	if e := or(r.Effort, ""); e != "" {
		if e != "none" && !s.cfg.Template.Mentions("reasoning_effort") {
			n, known := efforts[e]
			if !known {
				return invalid("reasoning_effort", "reasoning_effort %.20q: expected none, minimal, low, medium, high, xhigh or max", e)
			}
			budget = n
		}
		r.Template = r.Template.or("reasoning_effort", e)
	}
	budget = or(asked, budget)
	if !or(on, true) {
		budget = 0
	}
	if budget == 0 {
		on = new(false)
	}
	if on != nil {
		r.Template = r.Template.reasoning(*on)
	}
	if budget > 0 {
		r.Template = r.Template.or("thinking_budget", budget)
	}
	r.budget = budget
	return nil
}

// reasons reports whether the request wants reasoning; nil: it does not say.
func (r *chatRequest) reasons() (on *bool, err error) {
	if e := or(r.Effort, ""); e != "" {
		on = new(e != "none")
	}
	if t := r.Thinking; t != nil {
		if t.Type != "enabled" && t.Type != "adaptive" && t.Type != "disabled" {
			return nil, invalid("thinking", "thinking.type: expected enabled, adaptive or disabled")
		}
		on = new(t.Type != "disabled")
	}
	return on, nil
}

// reasoning returns the variables with those that turn reasoning on or off.
func (v variables) reasoning(on bool) variables {
	for name, value := range chat.ReasoningVariables(on) {
		v = v.or(name, value)
	}
	return v
}

// askedBudget returns the budget of the request, or nil.
func (r *chatRequest) askedBudget() (budget *int, err error) {
	type key struct {
		name  string
		value *int
	}
	keys := []key{{"thinking_token_budget", r.ThinkingBudget}, {"reasoning_budget_tokens", r.ReasoningBudget}}
	if t := r.Thinking; t != nil {
		keys = append(keys, key{"thinking.budget_tokens", t.Budget})
	}
	for _, k := range keys {
		if k.value == nil {
			continue
		}
		if *k.value < -1 {
			return nil, invalid(k.name, "%s: expected a number of tokens, 0 for no reasoning, or -1 for no limit", k.name)
		}
		budget = k.value
	}
	return budget, nil
}

// reasoning returns what the sampler of a choice must know of the reasoning before the
// answer; nil: nothing. constrained: the answer has a mask, which begins after reasoning
// that the prompt has begun.
func (s *Server) reasoning(r *chatRequest, prompt []int32, tools []json.RawMessage, constrained bool, eos []int32) func() decode.Reasoning {
	if !constrained && (r.budget < 0 || !s.cfg.Template.MarksReasoning()) {
		return nil
	}
	read := func() *chat.Reader { // reads the whole prompt
		return s.cfg.Template.NewReader(s.cfg.Tokenizer, prompt, chat.ReaderOptions{Tools: len(tools) > 0, Schemas: tools, Reasoning: true})
	}
	inside := read().Reasoning()
	if constrained && !inside {
		return nil
	}
	var inner []uint64
	if constrained {
		inner = allBut(eos, s.cfg.Manifest.Vocab)
	}
	var end chat.ReasoningEnd
	if r.budget >= 0 {
		end = s.reasoningEnd()
	}
	return func() decode.Reasoning {
		return decode.Reasoning{
			Inside: inside, Budget: r.budget, Inner: inner, Push: read().Follow,
			Close: func(again bool) []int32 { return end.Close(len(tools) > 0 && !constrained, again) },
		}
	}
}

// allBut returns a mask of all tokens but some.
func allBut(list []int32, vocab int) []uint64 {
	all := make([]uint64, (vocab+63)/64)
	for i := range all {
		all[i] = ^uint64(0)
	}
	for _, id := range list {
		if int(id) < vocab {
			all[id/64] &^= 1 << (id % 64)
		}
	}
	return all
}
