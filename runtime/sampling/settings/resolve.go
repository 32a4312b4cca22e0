package settings

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// A number is a setting that a caller, a configuration or a default sets.
type number struct {
	name  string
	set   func(s *decode.Settings, v float64)
	draws bool // it says how tokens are drawn at random
	cut   bool // it limits the candidates; named methods have parameters of their own instead
}

// numbers lists the settings that have several sources.
var numbers = []number{
	{"temperature", func(s *decode.Settings, v float64) { s.Temperature = v }, true, false},
	{"top_k", func(s *decode.Settings, v float64) { s.TopK = max(0, int(v)) }, true, true},
	{"top_p", func(s *decode.Settings, v float64) { s.TopP = Share(v) }, true, true},
	{"min_p", func(s *decode.Settings, v float64) { s.MinP = v }, true, true},
	{"typical_p", func(s *decode.Settings, v float64) { s.Typical = v }, true, true},
	{"tfs_z", func(s *decode.Settings, v float64) { s.TailFree = v }, true, true},
	{"repetition_penalty", func(s *decode.Settings, v float64) { s.Penalty = v }, false, false},
	{"penalty_window", setWindow, false, false},
	{"no_repeat_ngram_size", func(s *decode.Settings, v float64) { s.Rules.NoRepeat = int(v) }, false, false},
	{"min_length", func(s *decode.Settings, v float64) { s.Rules.MinLength = int(v) }, false, false},
	{"min_new_tokens", func(s *decode.Settings, v float64) { s.Rules.MinNew, s.Rules.MinLength = int(v), 0 }, false, false},
	{"encoder_repetition_penalty", func(s *decode.Settings, v float64) { s.Rules.SourcePenalty = v }, false, false},
	{"encoder_no_repeat_ngram_size", func(s *decode.Settings, v float64) { s.Rules.SourceRepeat = int(v) }, false, false},
}

// setWindow sets the number of tokens that penalties count: -1 is all, and 0 is none.
func setWindow(s *decode.Settings, v float64) {
	if s.PenaltyWindow = max(0, int(v)); v == 0 {
		s.Penalty = 0
	}
}

// builtIn holds the values that neither a caller nor the configuration sets, where tokens
// are drawn.
var builtIn = map[string]float64{"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}

// ownPenalty holds the repetition penalty where nobody chooses how tokens are drawn. Without
// it, small models repeat themselves until the limit: docs/benchmarks/serving.md.
var ownPenalty = map[string]float64{"repetition_penalty": 1.05, "penalty_window": 64}

// Share returns a top_p in the sense of decode.Options, where 0 is off. To everyone else
// it is the smallest share: the most probable token.
func Share(p float64) float64 {
	if p == 0 {
		return math.SmallestNonzeroFloat64
	}
	return p
}

// Flags are the settings that a caller asks for.
type Flags struct {
	Values   map[string]float64
	Strategy string            // named method; "": none
	Seeded   bool              // it asks for a seed of random numbers
	Names    map[string]string // of the flags, by those of the settings
}

// samples reports whether the caller asks for random numbers.
func (f *Flags) samples() bool {
	if f.Strategy != "" || f.Seeded {
		return true
	}
	return slices.ContainsFunc(numbers, func(s number) bool {
		v, ok := f.Values[s.name]
		return ok && s.draws && (v != 0 || s.cut)
	})
}

// Resolved are the settings of a text, before those of a request.
type Resolved struct {
	decode.Settings
	OwnPenalty bool // the repetition penalty is the built-in one: nobody chose how tokens are drawn
	lines      []string
}

// Resolve returns the settings of texts. Each value is the flag's, else the
// configuration's, else the built-in one. quiet says that tokens are drawn only if a flag
// or the configuration asks for it. An error names a field that cannot be honored.
func (c *Config) Resolve(f Flags, quiet bool) (*Resolved, error) {
	r := &Resolved{}
	r.Rules = c.rules
	drawn := !quiet || f.samples() || c.Samples()
	r.Strategy = c.method(&f)
	switch {
	case r.Strategy != "" && r.Strategy == f.Strategy:
		r.note("strategy", r.Strategy, cmp.Or(f.Names["strategy"], "--strategy"))
	case r.Strategy != "" && r.Strategy == c.strategy:
		r.note("strategy", r.Strategy, "model spec")
	case r.Strategy != "":
		r.note("strategy", r.Strategy, c.where(gguf+"mirostat"))
	}
	r.OwnPenalty = drawn && r.Strategy == "" && c.leavesOpen(&f)
	for _, s := range numbers {
		v, from := c.choose(&f, s.name, drawn)
		if own, ok := ownPenalty[s.name]; ok && r.OwnPenalty {
			v, from = own, builtInSource
		}
		if from == "" || s.cut && r.Strategy != "" {
			continue
		}
		s.set(&r.Settings, v)
		r.note(s.name, v, from)
	}
	c.describe(r)
	if r.Temperature == 0 && r.Strategy == "" {
		drawn = false
	}
	return r, c.Refused(drawn)
}

// choose returns the value of a setting and where it is from; "": it is not set.
func (c *Config) choose(f *Flags, name string, drawn bool) (v float64, from string) {
	if v, ok := f.Values[name]; ok {
		return v, cmp.Or(f.Names[name], "--"+strings.ReplaceAll(name, "_", "-"))
	}
	temperature := name == "temperature"
	if temperature && c.sample != nil && !*c.sample && !f.samples() {
		return 0, c.where("do_sample")
	}
	if v, ok := c.values[name]; ok {
		return v, c.where(c.from[name])
	}
	v, ok := builtIn[name]
	switch {
	case temperature && !drawn:
		return 0, builtInSource
	case temperature && c.method(f) != "":
		return 1, builtInSource
	case ok && drawn:
		return v, builtInSource
	}
	return 0, ""
}

// builtInSource says that a value is the built-in one.
const builtInSource = "built-in default"

// leavesOpen reports whether neither the flags nor the configuration say how tokens are
// drawn, or penalized.
func (c *Config) leavesOpen(f *Flags) bool {
	if c.sample != nil && !*c.sample && !f.samples() {
		return false
	}
	return !slices.ContainsFunc(numbers, func(s number) bool {
		_, flag := f.Values[s.name]
		_, stored := c.values[s.name]
		_, penalty := ownPenalty[s.name]
		return (s.draws || penalty) && (flag || stored)
	})
}

// method returns the named sampling method with its parameters, or "". Whoever sets a
// limit of the candidates, or temperature 0, chooses the standard method.
func (c *Config) method(f *Flags) string {
	if f.Strategy != "" {
		return f.Strategy
	}
	t, ok := f.Values["temperature"]
	if ok && t == 0 || slices.ContainsFunc(numbers, func(s number) bool { _, ok := f.Values[s.name]; return ok && s.cut }) {
		return ""
	}
	if version := c.Whole("mirostat", 0); version > 0 && c.strategy == "" {
		return fmt.Sprintf("mirostat%d:tau=%v,eta=%v", version, c.Number("mirostat_tau", 5), c.Number("mirostat_eta", 0.1))
	}
	return c.strategy
}

func (r *Resolved) note(name string, v any, from string) {
	r.lines = append(r.lines, fmt.Sprintf("%s %v (%s)", name, v, from))
}

// describe adds lines for what has one source: the configuration.
func (c *Config) describe(r *Resolved) {
	of := &c.rules
	for _, x := range []struct {
		name string
		set  bool
	}{
		{"bad_words_ids", len(of.BadWords) > 0}, {"suppress_tokens", len(of.Suppress) > 0}, {"begin_suppress_tokens", len(of.BeginSuppress) > 0},
		{"forced_bos_token_id", len(of.ForcedBOS) > 0}, {"forced_eos_token_id", len(of.ForcedEOS) > 0}, {"sequence_bias", len(of.SequenceBias) > 0},
		{"exponential_decay_length_penalty", of.Decay.Factor > 0}, {"remove_invalid_values", of.Finite}, {"renormalize_logits", of.Renormalize}, {"stop_strings", len(c.Stop) > 0},
	} {
		if x.set {
			r.lines = append(r.lines, fmt.Sprintf("%s (%s)", x.name, c.where(x.name)))
		}
	}
	for _, name := range []string{"max_new_tokens", "max_length", "num_beams", "length_penalty", "num_return_sequences"} {
		if v, ok := c.values[name]; ok {
			r.note(name, v, c.where(name))
		}
	}
	r.lines = append(r.lines, c.unused...)
}

// Lines says what each setting is and where it is from, one line each, for --verbose.
func (r *Resolved) Lines() []string { return slices.Clone(r.lines) }
