package chat

import (
	"fmt"
	"testing"
)

// TestAnswers reads answers with reasoning and calls in several formats, whole and in
// pieces.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, source, answer, content, reasoning, calls string }{
		{"final", "<|channel|>", "<|channel|>analysis<|message|>They\n ask.<|end|><|start|>assistant<|channel|>final<|message|>Fine.<|return|>", "Fine.", "They\n ask.", "[]"},
		{"call", "<|channel|>", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"n\": 3}<|call|>", "", "Hm.", `[f{"n": 3}]`},
		{"preamble", "<|channel|>", "<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant to=functions.a.b<|channel|>commentary json<|message|>\n{}", "Let me look.", "", "[a.b{}]"},
		{"recipient of the prompt", "<|channel|>", " to=functions.f<|channel|>commentary<|message|>{\"s\": \"<|call|>\"} <|end|><|start|>assistant<|channel|>final<|message|>x", "x", "", `[f{"s": "<|call|>"}]`},
		{"no arguments", "<|channel|>", "<|channel|>commentary to=functions.f<|message|>", "", "", "[f{}]"},
		{"no header", "<|channel|>", `{"a": 1}`, `{"a": 1}`, "", "[]"},
		{"not JSON", "<|channel|>", "<|channel|>commentary to=functions.f<|message|>print(1)<|call|>", "print(1)", "", "[]"},
		{"unfinished header", "<|channel|>", "<|channel|>analysis<|message|>a<|end|><|start|>assist", "", "a", "[]"},
		{"thought", "<|tool_call>*<|channel>thought", "<|channel>thought\nThey ask.\n<channel|>Look.<|tool_call>call:f{s:<|\"|>it's \"a\"\\n\n{}<|\"|>,n:3,o:{k:[<|\"|>x<|\"|>,null,True],l:{m:-1.5}}}<tool_call|><|tool_call>call:g{}<tool_call|>",
			"Look.", "They ask.\n", `[f{"s": "it's \"a\"\\n\n{}", "n": 3, "o": {"k": ["x", null, true], "l": {"m": -1.5}}} g{}]`},
		{"kinds", "｜DSML｜tool_calls>", "<think>Hm</think>\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"n\" string=\"true\">3</｜DSML｜parameter>\n<｜DSML｜parameter name=\"new\" string=\"false\">[1, \"a\"]</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"g\">\n\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
			"", "Hm", `[f{"n": "3", "new": [1, "a"]} g{}]`},
		{"fences", "<｜tool▁calls▁begin｜>```json", "Look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"n\": 3}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
			"Look.", "", `[f{"n": 3} g{}]`},
	} {
		for _, step := range []int{1, 2, 3, 7, 1000} {
			content, reasoning, calls, _ := readAnswer(formatOf(c.source), c.answer, step)
			var list []string
			for _, call := range calls {
				list = append(list, call.Name+call.Arguments)
			}
			if got := fmt.Sprint(list); content != c.content || reasoning != c.reasoning || got != c.calls {
				t.Errorf("%s in pieces of %d: content %q, reasoning %q, calls %s", c.name, step, content, reasoning, got)
			}
		}
	}
}
