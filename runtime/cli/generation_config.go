//go:build unix

package cli

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// rarer reads the less common settings, and rejects values that transformers
// rejects.
func (g generationConfig) rarer(r *decode.Rules, vocab int) error {
	r.SourceRepeat, r.SourcePenalty = g.whole("encoder_no_repeat_ngram_size", 0), g.number("encoder_repetition_penalty", 1)
	r.Finite, r.Renormalize = g["remove_invalid_values"] == true, g["renormalize_logits"] == true
	switch {
	case r.SourceRepeat < 0:
		return fmt.Errorf("encoder_no_repeat_ngram_size %d: expected 0 or more", r.SourceRepeat)
	case r.SourcePenalty <= 0:
		return fmt.Errorf("encoder_repetition_penalty %v: expected a number above 0", r.SourcePenalty)
	}
	if v := g["exponential_decay_length_penalty"]; v != nil {
		list, _ := v.([]any)
		start, factor := math.NaN(), math.NaN()
		if len(list) == 2 {
			start, factor = generationConfig{"": list[0]}.number("", start), generationConfig{"": list[1]}.number("", factor)
		}
		if start != math.Trunc(start) || math.Abs(start) > 1<<30 || !(factor > 0) {
			return fmt.Errorf("exponential_decay_length_penalty %v: expected [start, factor], a whole number of tokens and a number above 0", v)
		}
		r.Decay = decode.Decay{Start: int(start), Factor: factor}
	}
	return g.biases(r, vocab)
}

// biases reads sequence_bias: a list of pairs of token ids and a number.
func (g generationConfig) biases(r *decode.Rules, vocab int) error {
	v := g["sequence_bias"]
	if v == nil {
		return nil
	}
	list, _ := v.([]any)
	for _, pair := range list {
		p, _ := pair.([]any)
		if len(p) != 2 {
			break
		}
		value, ok := p[1].(float64)
		ids := idList(p[0])
		if !ok || len(ids) == 0 {
			break
		}
		for _, id := range ids {
			if id < 0 || int(id) >= vocab {
				return fmt.Errorf("sequence_bias: token id %d: the vocabulary has %d tokens", id, vocab)
			}
		}
		r.SequenceBias = append(r.SequenceBias, decode.Bias{Tokens: ids, Value: value})
	}
	if len(r.SequenceBias) != len(list) || len(list) == 0 {
		return fmt.Errorf("sequence_bias %v: expected a list of [[token ids], number]", v)
	}
	return nil
}
