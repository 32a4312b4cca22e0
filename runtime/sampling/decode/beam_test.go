package decode

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
)

// recorded is testdata/beams.json, the results of transformers' generate (see
// record_beams.py).
type recorded struct {
	Tables [][]float32
	Cases  []struct {
		Table     int
		Prompt    []int32
		Settings  map[string]any
		Sequences [][]int32
		Scores    []float64
	}
}

const tableVocab, tablePeriod = 13, 5

// tableRow returns the row of logits after a sequence.
func tableRow(table []float32, sequence []int32) []float32 {
	at := ((len(sequence)-1)%tablePeriod*tableVocab + int(sequence[len(sequence)-1])) * tableVocab
	return table[at : at+tableVocab]
}

func number(v any, otherwise float64) float64 {
	if f, ok := v.(float64); ok {
		return f
	}
	return otherwise
}

func numbers(v any) (out []int32) {
	switch v := v.(type) {
	case float64:
		return []int32{int32(v)}
	case []any:
		for _, x := range v {
			out = append(out, numbers(x)...)
		}
	}
	return out
}

// options converts settings with the names of generation_config.json.
func options(s map[string]any, prompt int) BeamOptions {
	o := BeamOptions{Beams: int(number(s["num_beams"], 1)), LengthPenalty: number(s["length_penalty"], 1), MaxLength: int(number(s["max_length"], 0))}
	switch s["early_stopping"] {
	case true:
		o.Stopping = StopFull
	case "never":
		o.Stopping = StopNever
	}
	o.Rules = Rules{
		Penalty: number(s["repetition_penalty"], 0), NoRepeat: int(number(s["no_repeat_ngram_size"], 0)),
		MinLength: int(number(s["min_length"], 0)), MinNew: int(number(s["min_new_tokens"], 0)),
		ForcedBOS: numbers(s["forced_bos_token_id"]), ForcedEOS: numbers(s["forced_eos_token_id"]),
		Suppress: numbers(s["suppress_tokens"]), BeginSuppress: numbers(s["begin_suppress_tokens"]), EOS: numbers(s["eos_token_id"]),
		Prompt: prompt, MaxLength: o.MaxLength,
	}
	r := &o.Rules
	r.SourcePenalty, r.SourceRepeat = number(s["encoder_repetition_penalty"], 0), int(number(s["encoder_no_repeat_ngram_size"], 0))
	r.Finite, r.Renormalize = s["remove_invalid_values"] == true, s["renormalize_logits"] == true
	if d, ok := s["exponential_decay_length_penalty"].([]any); ok {
		r.Decay = Decay{int(d[0].(float64)), d[1].(float64)}
	}
	if list, ok := s["sequence_bias"].([]any); ok {
		for _, b := range list {
			b := b.([]any)
			r.SequenceBias = append(r.SequenceBias, Bias{numbers(b[0]), b[1].(float64)})
		}
	}
	if words, ok := s["bad_words_ids"].([]any); ok {
		for _, w := range words {
			o.Rules.BadWords = append(o.Rules.BadWords, numbers(w))
		}
	}
	return o
}

// search runs a beam search over rows that a function returns.
func search(t *testing.T, prompt []int32, opt BeamOptions, row func([]int32) []float32) []Hypothesis {
	t.Helper()
	b, err := NewBeamSearch(prompt, opt)
	if err != nil {
		t.Fatal(err)
	}
	beams := [][]int32{prompt}
	for {
		var rows [][]float32
		for _, s := range beams {
			rows = append(rows, row(s))
		}
		branches, err := b.Step(rows)
		if err != nil {
			t.Fatal(err)
		}
		if branches == nil {
			return b.Best(opt.Beams)
		}
		var next [][]int32
		for _, br := range branches {
			next = append(next, append(slices.Clone(beams[min(br.Parent, len(beams)-1)]), br.Token))
		}
		beams = next
	}
}

func TestBeamsLikeTransformers(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/beams.json")
	if err != nil {
		t.Fatal(err)
	}
	var rec recorded
	if err := json.Unmarshal(data, &rec); err != nil {
		t.Fatal(err)
	}
	if len(rec.Cases) < 170 {
		t.Fatalf("only %d cases", len(rec.Cases))
	}
	for i, c := range rec.Cases {
		opt := options(c.Settings, len(c.Prompt))
		opt.Rules.Source = c.Prompt
		row := func(s []int32) []float32 { return tableRow(rec.Tables[c.Table], s) }
		if opt.Beams == 1 {
			if got := greedy(opt, c.Prompt, row); !slices.Equal(got, c.Sequences[0]) {
				t.Errorf("case %d, %v: %v, expected %v", i, c.Settings, got, c.Sequences[0])
			}
			continue
		}
		best := search(t, c.Prompt, opt, row)
		if len(best) != len(c.Sequences) {
			t.Errorf("case %d, %v: %d hypotheses, expected %d", i, c.Settings, len(best), len(c.Sequences))
			continue
		}
		for k, h := range best {
			if !slices.Equal(h.Tokens, c.Sequences[k]) || math.Abs(float64(h.Score)-c.Scores[k]) > 1e-5 {
				t.Errorf("case %d.%d, %v: %v %v, expected %v %v", i, k, c.Settings, h.Tokens, h.Score, c.Sequences[k], c.Scores[k])
			}
		}
	}
}

// greedy picks the argmax of the tokens that the rules allow.
func greedy(opt BeamOptions, prompt []int32, row func([]int32) []float32) []int32 {
	s := slices.Clone(prompt)
	for len(s) < opt.MaxLength {
		scores := slices.Clone(row(s))
		opt.Rules.Apply(scores, s)
		best, _ := argmax(scores)
		s = append(s, int32(best))
		if slices.Contains(opt.Rules.EOS, int32(best)) {
			break
		}
	}
	return s
}

// TestWideBeam compares a beam search as wide as the space of sequences, which is
// exact, with an enumeration.
func TestWideBeam(t *testing.T) {
	t.Parallel()
	const vocab, length, eos = 4, 5, 0
	logits := func(s []int32) []float32 {
		row := make([]float32, vocab)
		h := uint64(17)
		for _, id := range s {
			h = (h*31 + uint64(id) + 7) % 10007
		}
		for v := range row {
			row[v] = float32(2 * math.Sin(float64(h)*float64(v+1)))
		}
		return row
	}
	type scored struct {
		tokens string
		score  float64
	}
	var all []scored
	var walk func(s []int32, sum float64)
	walk = func(s []int32, sum float64) {
		if n := len(s) - 1; n > 0 && (s[n] == eos || len(s) == length) {
			all = append(all, scored{fmt.Sprint(s), sum / float64(n)})
			return
		}
		row := logits(s)
		total := 0.0
		for _, l := range row {
			total += math.Exp(float64(l))
		}
		for v, l := range row {
			walk(append(slices.Clone(s), int32(v)), sum+float64(l)-math.Log(total))
		}
	}
	walk([]int32{1}, 0)
	slices.SortFunc(all, func(a, b scored) int {
		if a.score > b.score {
			return -1
		}
		return 1
	})
	opt := BeamOptions{Beams: 300, LengthPenalty: 1, Stopping: StopNever, MaxLength: length, Rules: Rules{EOS: []int32{eos}}}
	for i, h := range search(t, []int32{1}, opt, logits)[:20] {
		if fmt.Sprint(h.Tokens) != all[i].tokens || math.Abs(float64(h.Score)-all[i].score) > 1e-5 {
			t.Errorf("%d: %v %v, expected %v", i, h.Tokens, h.Score, all[i])
		}
	}
}

func TestBeamErrors(t *testing.T) {
	t.Parallel()
	for _, o := range []BeamOptions{{Beams: 0, MaxLength: 9}, {Beams: 2, MaxLength: 1}, {Beams: 2, MaxLength: 9, LengthPenalty: math.NaN()}} {
		if _, err := NewBeamSearch([]int32{1}, o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	b, err := NewBeamSearch([]int32{1}, BeamOptions{Beams: 2, MaxLength: 9})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Step([][]float32{{1, float32(math.NaN())}}); err != ErrNaN {
		t.Errorf("NaN: %v", err)
	}
}
