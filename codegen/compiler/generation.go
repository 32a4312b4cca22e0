package compiler

import "fmt"

// ignored lists the settings of a generation_config.json that affect
// transformers but not translate, one line each.
func ignored(generation map[string]any) (out []string) {
	number := func(key string, usual float64) float64 {
		if x, ok := generation[key].(float64); ok {
			return x
		}
		return usual
	}
	set := func(key string) bool { return generation[key] != nil }
	for _, s := range []struct {
		changes      bool
		key, instead string
	}{
		{generation["do_sample"] == true, "do_sample", "translate searches for the most probable tokens and samples none"},
		{number("num_beam_groups", 1) > 1, "num_beam_groups", "all beams are one group"},
		{number("diversity_penalty", 0) != 0, "diversity_penalty", "all beams are one group"},
		{set("constraints"), "constraints", "no words are forced into the text"},
		{set("force_words_ids"), "force_words_ids", "no words are forced into the text"},
		{number("guidance_scale", 1) != 1, "guidance_scale", "no second text guides the first"},
		{number("penalty_alpha", 0) > 0 && number("top_k", 50) > 1, "penalty_alpha", "there is no contrastive search"},
		{set("dola_layers"), "dola_layers", "logits are those of the last layer"},
		{set("watermarking_config"), "watermarking_config", "texts have no watermark"},
		{set("stop_strings"), "stop_strings", "a translation ends with an end token or at its length"},
		{set("max_time"), "max_time", "a translation ends with an end token or at its length"},
		{generation["token_healing"] == true, "token_healing", "the last token of a prompt stays"},
	} {
		if s.changes {
			out = append(out, fmt.Sprintf("generation_config.json: %s %v is not followed: %s", s.key, generation[s.key], s.instead))
		}
	}
	return out
}
