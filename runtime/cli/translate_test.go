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

type translated struct {
	Outputs []struct {
		Tokens []int32
		Text   string
		Score  float64
	}
}

// searched is what a beam search gives over the fake model's logits computed
// here, prefix by prefix.
func searched(t *testing.T, source []int32, start int32, opt decode.BeamOptions, salt byte) []decode.Hypothesis {
	t.Helper()
	search, err := decode.NewBeamSearch([]int32{start}, opt)
	if err != nil {
		t.Fatal(err)
	}
	beams := [][]int32{{start}}
	for {
		var rows [][]float32
		for _, b := range beams {
			rows = append(rows, devicetest.Translated(source, b, salt))
		}
		branches, err := search.Step(rows)
		if err != nil {
			t.Fatal(err)
		}
		if branches == nil {
			return search.Best(opt.Beams)
		}
		var next [][]int32
		for _, br := range branches {
			next = append(next, append(slices.Clone(beams[min(br.Parent, len(beams)-1)]), br.Token))
		}
		beams = next
	}
}

func TestTranslateBeams(t *testing.T) {
	t.Parallel()
	b := newTranslator(t, map[string]any{
		"decoder_start_token_id": 5.0, "eos_token_id": 2.0, "num_beams": 3.0, "length_penalty": 0.5, "max_length": 90.0,
		"num_return_sequences": 2.0, "no_repeat_ngram_size": 3.0, "bad_words_ids": []any{[]any{8.0}}, "forced_bos_token_id": 11.0,
		"min_length": 70.0,
	})
	opt := decode.BeamOptions{Beams: 3, LengthPenalty: 0.5, MaxLength: 90, Rules: decode.Rules{
		EOS: []int32{2}, NoRepeat: 3, BadWords: [][]int32{{8}}, ForcedBOS: []int32{11}, MinLength: 70,
	}}
	sources := [][]int32{{9, 10, 11}, {30, 31}}
	check := func(got translated, best int) {
		t.Helper()
		if len(got.Outputs) != best*len(sources) {
			t.Fatalf("%d outputs", len(got.Outputs))
		}
		for i, source := range sources {
			for k, h := range searched(t, source, 5, opt, b.salt)[:best] {
				o := got.Outputs[i*best+k]
				if !slices.Equal(o.Tokens, h.Tokens) || math.Abs(o.Score-float64(h.Score)) > 1e-6 || o.Text != b.tok.Decode(h.Tokens, true) {
					t.Errorf("source %d, %d: %+v, expected %+v", i, k, o, h)
				}
			}
		}
	}
	var got translated
	b.must(t, &got, "translate", "--encoder-ids", "9,10,11", "--encoder-ids", "30,31", "--json")
	check(got, 2)
	opt.Beams, opt.Rules.ForcedBOS, opt.MaxLength = 6, []int32{12}, 81
	b.must(t, &got, "translate", "--encoder-ids", "9,10,11", "--encoder-ids", "30,31", "--json", "--beams", "6", "--best", "4", "--forced-bos", "12", "-n", "80")
	check(got, 4)
}

func TestTranslateGreedy(t *testing.T) {
	t.Parallel()
	b := newTranslator(t, nil)
	source := append([]int32{1}, b.tok.Encode("Hi you.", true)...)
	want := []int32{1}
	for len(want) < 31 {
		row := devicetest.Translated(source, want, b.salt)
		best := int32(0)
		for i, l := range row {
			if l > row[best] {
				best = int32(i)
			}
		}
		if want = append(want, best); best == devicetest.EOS {
			break
		}
	}
	var got translated
	b.must(t, &got, "translate", "Hi you.", "-n", "30", "--json")
	if len(got.Outputs) != 1 || !slices.Equal(got.Outputs[0].Tokens, want) {
		t.Errorf("%+v, expected %v", got, want)
	}
	code, stdout, stderr := b.run(t.Context(), "translate", "Hi you.", "-n", "30")
	if code != 0 || strings.TrimSuffix(stdout, "\n") != b.tok.Decode(want, true) {
		t.Errorf("exit %d, %q (%s)", code, stdout, stderr)
	}
	var logits struct{ Logits [][]float32 }
	b.must(t, &logits, "logits", "--encoder-ids", "9,10", "--ids", "1,12,13", "--last", "2")
	for i, row := range logits.Logits {
		if !slices.Equal(row, devicetest.Translated([]int32{9, 10}, []int32{1, 12, 13}[:2+i], b.salt)) {
			t.Errorf("logits row %d differs", i)
		}
	}
	var hidden struct{ Hidden [][]float32 }
	b.must(t, &hidden, "hidden", "--ids", "9,10")
	if len(hidden.Hidden) != 2 || hidden.Hidden[1][3] != devicetest.Encode([]int32{9, 10}, nil, b.salt) {
		t.Errorf("hidden %v", hidden.Hidden)
	}
}

func TestTranslateErrors(t *testing.T) {
	t.Parallel()
	b := newTranslator(t, nil)
	for want, args := range map[string][]string{
		"expected a text":    {},
		"--best 3":           {"Hi", "--best", "3", "--beams", "2"},
		"--beams -1":         {"Hi", "--beams=-1"},
		"--tgt xx":           {"Hi", "--tgt", "xx"},
		"--src xx":           {"Hi", "--src", "xx"},
		"token id 61":        {"Hi", "--forced-bos", "61"},
		"-n -5":              {"Hi", "--n=-5"},
		"the vocabulary has": {"--encoder-ids", "99"},
	} {
		code, _, stderr := b.run(t.Context(), append([]string{"translate"}, args...)...)
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %q, expected %q", args, code, stderr, want)
		}
	}
}
