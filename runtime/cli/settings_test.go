//go:build unix

package cli_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// configured returns a binary whose model has a generation_config.json.
func configured(t *testing.T, text string) *fakeBinary {
	t.Helper()
	return newBinary(t, func(m *manifest.Manifest) {
		if err := json.Unmarshal([]byte(text), &m.Generation); err != nil {
			t.Fatal(err)
		}
	})
}

// TestModelSettings: generate follows the model's configuration, the same with drafts as
// without, and says so.
func TestModelSettings(t *testing.T) {
	t.Parallel()
	const rules = `"suppress_tokens": [20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30], "no_repeat_ngram_size": 2, "bad_words_ids": [[31], [32, 33]], "begin_suppress_tokens": [40],
		"repetition_penalty": 1.3, "forced_eos_token_id": 41, "max_new_tokens": 30`
	draft := drafting(t, newBinary(t, nil))
	for _, config := range []string{`{` + rules + `}`, `{` + rules + `, "do_sample": true, "top_k": 12}`} {
		b := configured(t, config)
		var plain, drafted generated
		ask := []string{"generate", "--ids", "1,9,12", "--ignore-eos", "--json"}
		b.must(t, &plain, append(ask, "--speculate", "none")...)
		b.must(t, &drafted, append(ask, "--draft", draft)...)
		n := len(plain.Tokens)
		if !slices.Equal(plain.Tokens, drafted.Tokens) || n != 30 || plain.Tokens[n-1] != 41 {
			t.Errorf("%s: %v, with drafts %v", config, plain.Tokens, drafted.Tokens)
		}
		for _, id := range plain.Tokens {
			if id >= 20 && id <= 31 {
				t.Errorf("%s: token %d, which is suppressed", config, id)
			}
		}
	}
	b := configured(t, `{"repetition_penalty": 1.3, "top_p": 0.5, "penalty_alpha": 0.6}`)
	code, _, stderr := b.run(t.Context(), "generate", "--ids", "1", "-n", "1")
	if code != 2 || !strings.Contains(stderr, "penalty_alpha is 0.6") || !strings.Contains(stderr, "--ignore-setting penalty_alpha") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	code, _, stderr = b.run(t.Context(), "generate", "--ids", "1", "-n", "1", "--ignore-setting", "penalty_alpha", "--verbose", "--temp", "0.5")
	for _, want := range []string{"temperature 0.5 (--temp)", "top_k 40 (built-in default)", "top_p 0.5 (generation_config.json top_p)", "repetition_penalty 1.3 (gen"} {
		if code != 0 || !strings.Contains(stderr, "sampling: "+want) {
			t.Errorf("exit %d, expected %q in %s", code, want, stderr)
		}
	}
}

// TestModelBeams: a model that asks for a beam search gets one from generate, and a
// refusal from what has none.
func TestModelBeams(t *testing.T) {
	t.Parallel()
	b := configured(t, `{"num_beams": 3, "length_penalty": 0.5}`)
	var own, asked choices
	b.must(t, &own, "generate", "--ids", "9,10", "-n", "6", "--json")
	b.must(t, &asked, "generate", "--ids", "9,10", "-n", "6", "--json", "--ignore-setting", "num_beams,length_penalty", "--strategy", "beam:beams=3,length_penalty=0.5")
	if len(own.Choices) != 1 || own.Choices[0].Score == nil || *own.Choices[0].Score != *asked.Choices[0].Score {
		t.Errorf("%+v, expected %+v", own, asked)
	}
	for _, command := range [][]string{{"chat", "--template", lettersTemplate}, {"serve", "--port", "0"}, {"generate", "--ids", "1", "--temp", "1"}} {
		if code, _, stderr := b.run(t.Context(), command...); code != 2 || !strings.Contains(stderr, "--ignore-setting num_beams") {
			t.Errorf("%v: exit %d, %s", command, code, stderr)
		}
	}
}

// TestChatRules: what counts from the start of an answer does in every turn.
func TestChatRules(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	prompt := b.tok.Encode("uHello.a", false)
	first := devicetest.Greedy(prompt, 1, b.salt)[0]
	said, err := json.Marshal(map[string]any{"begin_suppress_tokens": []int32{first}})
	if err != nil {
		t.Fatal(err)
	}
	b = configured(t, string(said))
	code, stdout, stderr := b.chat(t, "Hello\n/reset\nHello\n", "--template", lettersTemplate, "-n", "4")
	lines := strings.Split(stdout, "\n")
	if code != 0 || len(lines) != 3 || lines[0] != lines[1] || strings.HasPrefix(lines[0], b.tok.Decode([]int32{first}, false)) {
		t.Errorf("exit %d, %q, %s", code, stdout, stderr)
	}
}
