package compiler

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestIgnoredSettings(t *testing.T) {
	t.Parallel()
	settings := func(text string) (m map[string]any) {
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, key := range []string{
		`"do_sample": true`, `"num_beam_groups": 2`, `"diversity_penalty": 0.5`, `"constraints": [1]`, `"force_words_ids": [[3]]`,
		`"guidance_scale": 1.5`, `"penalty_alpha": 0.6`, `"dola_layers": "low"`, `"watermarking_config": {}`, `"stop_strings": ["x"]`,
		`"max_time": 3`, `"token_healing": true`,
	} {
		lines := ignored(settings("{" + key + "}"))
		if name, _, _ := strings.Cut(key[1:], `"`); len(lines) != 1 || !strings.Contains(lines[0], name) {
			t.Errorf("%s: %q", key, lines)
		}
	}
	same := `{"do_sample": false, "num_beam_groups": 1, "diversity_penalty": 0.0, "guidance_scale": null, "constraints": null, "num_beams": 4, "top_k": 50}`
	if lines := ignored(settings(same)); lines != nil {
		t.Errorf("of settings that change nothing: %q", lines)
	}
}
