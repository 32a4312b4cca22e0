package compiler

import (
	"fmt"
	"slices"
)

// ignoredSettings are settings of generation_config.json that change what
// transformers generates and that translate does not know, with the values that
// change nothing and what happens instead.
var ignoredSettings = []struct {
	key     string
	neutral []any // besides null
	instead string
}{
	{"do_sample", []any{false}, "translate searches for the likeliest tokens and draws none"},
	{"num_beam_groups", []any{1.0}, "all beams are one group"},
	{"diversity_penalty", []any{0.0}, "all beams are one group"},
	{"constraints", nil, "no words are forced into the text"},
	{"force_words_ids", nil, "no words are forced into the text"},
	{"guidance_scale", []any{1.0}, "no second text guides the first"},
	{"penalty_alpha", []any{0.0}, "there is no contrastive search"},
	{"dola_layers", nil, "logits are those of the last layer"},
	{"watermarking_config", nil, "texts have no watermark"},
	{"stop_strings", nil, "a translation ends with an end token or at its length"},
	{"max_time", nil, "a translation ends with an end token or at its length"},
	{"token_healing", []any{false}, "the last token of a prompt stays"},
}

// ignored describes the settings of a generation_config.json that translate
// ignores, one line each.
func ignored(generation map[string]any) (out []string) {
	for _, s := range ignoredSettings {
		v := generation[s.key]
		if v == nil || slices.Contains(s.neutral, v) || s.key == "penalty_alpha" && generation["top_k"] == 1.0 {
			continue
		}
		out = append(out, fmt.Sprintf("generation_config.json: %s %v is not followed: %s", s.key, v, s.instead))
	}
	return out
}
