//go:build unix

package cli_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// choices is generate's JSON document with several continuations.
type choices struct {
	PromptTokens []int32 `json:"prompt_tokens"`
	Choices      []struct {
		Tokens       []int32
		Text         string
		FinishReason string `json:"finish_reason"`
		Score        *float32
		Logprobs     []struct {
			ID      int32
			Token   string
			Logprob float64
			Top     []struct{ ID int32 }
		}
	}
}

// TestGenerateChoices: each choice is what its seed gives alone, and the
// log-probabilities are those of the rows.
func TestGenerateChoices(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	args := []string{"generate", "--ids", "9,10,11", "-n", "9", "--temp", "1", "--ignore-eos", "--json"}
	var all choices
	b.must(t, &all, append(args, "--seed", "5", "--choices", "3", "--logprobs", "2")...)
	if len(all.Choices) != 3 {
		t.Fatalf("%d choices", len(all.Choices))
	}
	for i, c := range all.Choices {
		var one generated
		b.must(t, &one, append(args, "--seed", []string{"5", "6", "7"}[i])...)
		if !slices.Equal(c.Tokens, one.Tokens) || c.Text != one.Text || c.FinishReason != "length" {
			t.Errorf("choice %d: %v %q, alone %v %q", i, c.Tokens, c.Text, one.Tokens, one.Text)
		}
		history := slices.Clone(all.PromptTokens)
		for k, l := range c.Logprobs {
			row := devicetest.Logits(history, b.salt)
			total, err := decode.LogSumExp(row)
			if err != nil {
				t.Fatal(err)
			}
			if l.ID != c.Tokens[k] || len(l.Top) != 2 || math.Abs(l.Logprob-(float64(row[l.ID])-total)) > 1e-12 {
				t.Errorf("choice %d, token %d: %+v", i, k, l)
			}
			history = append(history, l.ID)
		}
		if len(c.Logprobs) != len(c.Tokens) {
			t.Errorf("choice %d: %d log-probabilities of %d tokens", i, len(c.Logprobs), len(c.Tokens))
		}
	}
}

// TestGenerateBeams: the best texts, best first, in any of the forms.
func TestGenerateBeams(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	var found choices
	b.must(t, &found, "generate", "--ids", "9,10", "-n", "6", "--strategy", "beam:beams=3", "--choices", "2", "--json")
	if len(found.Choices) != 2 || found.Choices[0].Score == nil || *found.Choices[0].Score < *found.Choices[1].Score {
		t.Fatalf("%+v", found)
	}
	var biased choices
	first := found.Choices[0].Tokens[0]
	b.must(t, &biased, "generate", "--ids", "9,10", "-n", "6", "--strategy", "beam:beams=3", "--logit-bias", "30=100", "--json")
	if got := biased.Choices[0].Tokens[0]; got != 30 || first == 30 {
		t.Errorf("first token %d, with the bias %d", first, got)
	}
	for _, more := range [][]string{
		{"--choices", "4", "--strategy", "beam:beams=3"}, {"--choices", "0"}, {"--logprobs", "2"}, {"--logprobs", "2", "--json", "--strategy", "beam"},
		{"--presence-penalty", "1", "--strategy", "beam"}, {"--choices", "2", "-n", "0"}, {"--strategy", "beam:beams=0"},
	} {
		code, _, stderr := b.run(t.Context(), append([]string{"generate", "--ids", "9", "-n", "3"}, more...)...)
		if code != 1 && code != 2 || strings.Count(strings.TrimSpace(stderr), "\n") > 0 {
			t.Errorf("%v: exit %d, %q", more, code, stderr)
		}
	}
	if code, out, stderr := b.run(t.Context(), "generate", "--ids", "9", "-n", "3", "--choices", "2"); code != 0 || !strings.HasPrefix(out, "[1] ") || strings.Count(out, "\n[2] ") != 1 {
		t.Errorf("exit %d, %q, %s", code, out, stderr)
	}
}
