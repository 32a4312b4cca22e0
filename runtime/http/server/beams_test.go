//go:build unix

package server_test

import (
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// TestBeams compares a request with a beam search over the model's rows.
func TestBeams(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	prompt := s.tok.Encode("Beams", true)
	search, err := decode.NewBeamSearch(prompt, decode.BeamOptions{Beams: 3, LengthPenalty: 1, MaxLength: len(prompt) + 12, Rules: decode.Rules{EOS: []int32{devicetest.EOS}}})
	if err != nil {
		t.Fatal(err)
	}
	live := [][]int32{prompt}
	for live != nil {
		var rows [][]float32
		for _, l := range live {
			rows = append(rows, devicetest.Logits(l, salt))
		}
		branches, err := search.Step(rows)
		if err != nil {
			t.Fatal(err)
		}
		var next [][]int32
		for _, b := range branches {
			next = append(next, append(append([]int32{}, live[min(b.Parent, len(live)-1)]...), b.Token))
		}
		live = next
	}
	for _, strategy := range []string{`"beam:beams=3"`, `{"name":"beam_search","beams":3}`} {
		var c completion
		if status, _ := s.post(t, "/v1/completions", `{"prompt":"Beams","max_tokens":12,"n":2,"strategy":`+strategy+`}`, &c); status != 200 {
			t.Fatal(status, c.Error)
		}
		for i, h := range search.Best(2) {
			if want := s.tok.Decode(h.Tokens[len(prompt):], true); c.Choices[i].Text != want {
				t.Errorf("%d: %q, expected %q", i, c.Choices[i].Text, want)
			}
		}
	}
	checkBeamLogprobs(t, s, prompt, search.Best(2))
	var biased completion
	s.post(t, "/v1/completions", `{"prompt":"Beams","max_tokens":5,"strategy":"beam","logit_bias":{"12":100}}`, &biased)
	if len(biased.Choices) != 1 || biased.Choices[0].Text != "HHHHH" {
		t.Errorf("with a bias: %+v", biased)
	}
	for _, more := range []string{`"strategy":"beam:beams=0"`, `"strategy":"beam","presence_penalty":1`, `"strategy":"beam","guided_regex":"a"`, `"strategy":"beam","speculate":"lookup"`, `"strategy":"beam:beams=9"`, `"strategy":"beam","n":4,"strategy":"beam:beams=2"`} {
		var c completion
		if status, _ := s.post(t, "/v1/completions", `{"prompt":"Beams",`+more+`}`, &c); status != 400 {
			t.Errorf("%s: status %d", more, status)
		}
	}
}

// checkBeamLogprobs compares the log-probabilities of hypotheses and their prompt with
// the model's rows.
func checkBeamLogprobs(t *testing.T, s *service, prompt []int32, best []decode.Hypothesis) {
	t.Helper()
	var c completion
	s.post(t, "/v1/completions", `{"prompt":"Beams","max_tokens":12,"n":2,"strategy":"beam:beams=3","logprobs":2,"echo":true}`, &c)
	if len(c.Choices) != len(best) {
		t.Fatalf("%d choices, expected %d: %+v", len(c.Choices), len(best), c.Error)
	}
	for i, h := range best {
		l := c.Choices[i].Logprobs
		if len(l.TokenLogprobs) != len(h.Tokens) || l.TokenLogprobs[0] != nil {
			t.Fatalf("choice %d: %d log-probabilities, expected those of %d tokens but the first", i, len(l.TokenLogprobs), len(h.Tokens))
		}
		for k := 1; k < len(h.Tokens); k++ {
			row := devicetest.Logits(h.Tokens[:k], salt)
			total, err := decode.LogSumExp(row)
			if err != nil {
				t.Fatal(err)
			}
			if want := float64(row[h.Tokens[k]]) - total; *l.TokenLogprobs[k] != want || len(l.TopLogprobs[k]) != 2 {
				t.Errorf("choice %d token %d: %v with %d others, expected %v with 2", i, k, *l.TokenLogprobs[k], len(l.TopLogprobs[k]), want)
			}
		}
	}
}
