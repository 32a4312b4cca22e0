//go:build unix

package cli_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// become makes the fake binary's model another one.
func become(other *manifest.Manifest) func(*manifest.Manifest) {
	return func(m *manifest.Manifest) {
		weights := m.Weights
		*m = *other
		m.Weights, m.AddBOS = weights, true
	}
}

func newEncoder(t *testing.T) *fakeBinary { return newBinary(t, become(devicetest.Encoder())) }

func newTranslator(t *testing.T, generation map[string]any) *fakeBinary {
	m := devicetest.EncoderDecoder()
	m.Generation = generation
	return newBinary(t, become(m))
}

func TestEncoderHidden(t *testing.T) {
	t.Parallel()
	b := newEncoder(t)
	b2 := newBinary(t, func(m *manifest.Manifest) {
		become(devicetest.Encoder())(m)
		m.Weights = slices.Clone(m.Weights)
	})
	var out struct{ Hidden [][]float32 }
	b.must(t, &out, "hidden", "--ids", "9,10,11")
	if len(out.Hidden) != 3 || out.Hidden[2][0] != 11 || out.Hidden[0][3] != devicetest.Encode([]int32{9, 10, 11}, nil, b.salt) {
		t.Errorf("%v", out.Hidden)
	}
	b2.must(t, &out, "hidden", "--ids", "9,10,11", "--token-type-ids", "0,0,0")
	for types, want := range map[string]string{"0,1": "2 types for 3 tokens", "0,0,1": "has 1 of them"} {
		if code, _, stderr := b.run(t.Context(), "hidden", "--ids", "9,10,11", "--token-type-ids", types); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("types %s: exit %d, %s", types, code, stderr)
		}
	}
}

func TestEncoderLogits(t *testing.T) {
	t.Parallel()
	b := newEncoder(t)
	var text, ids []int32
	for i := range 80 {
		text = append(text, int32(8+i%40))
	}
	var out struct{ Logits [][]float32 }
	b.must(t, &out, "logits", "--ids", strings.Trim(fmt.Sprint(text), "[]"), "--last", "80")
	if len(out.Logits) != 80 {
		t.Fatalf("%d rows", len(out.Logits))
	}
	for i, row := range out.Logits {
		if !slices.Equal(row, devicetest.Masked(text, ids, i, b.salt)) {
			t.Errorf("row %d differs", i)
		}
	}
}

// TestEmbed compares batches of more texts than a step takes with the fake
// encoder's rows: token, position, type, hash of the text.
func TestEmbed(t *testing.T) {
	t.Parallel()
	b := newEncoder(t)
	args := []string{"embed"}
	var texts [][]int32
	for i := range 20 {
		ids := []int32{int32(8 + i), 20, int32(30 + i)}[:2+i%2]
		texts = append(texts, ids)
		args = append(args, "--ids", strings.Trim(fmt.Sprint(ids), "[]"))
	}
	var out struct{ Embeddings [][]float64 }
	for _, pooling := range []string{"mean", "cls", "last"} {
		b.must(t, &out, append(args, "--pooling", pooling)...)
		if len(out.Embeddings) != len(texts) {
			t.Fatalf("%d embeddings", len(out.Embeddings))
		}
		for i, ids := range texts {
			n := len(ids)
			want := []float64{float64(ids[0]), 0, 0, float64(devicetest.Encode(ids, nil, b.salt))}
			switch pooling {
			case "mean":
				want[0], want[1] = 0, float64(n-1)/2
				for _, id := range ids {
					want[0] += float64(id) / float64(n)
				}
			case "last":
				want[0], want[1] = float64(ids[n-1]), float64(n-1)
			}
			for k := range want {
				if math.Abs(out.Embeddings[i][k]-want[k]) > 1e-5 {
					t.Errorf("%s of text %d: %v, expected %v", pooling, i, out.Embeddings[i], want)
					break
				}
			}
		}
	}
	b.must(t, &out, "embed", "Hi", "you", "--normalize")
	for _, v := range out.Embeddings {
		sum := 0.0
		for _, x := range v {
			sum += x * x
		}
		if math.Abs(sum-1) > 1e-6 || len(out.Embeddings) != 2 {
			t.Errorf("length %v of %v", sum, v)
		}
	}
	decoder := newBinary(t, nil)
	decoder.must(t, &out, "embed", "--ids", "9,10", "--pooling", "last")
	if out.Embeddings[0][0] != 10 {
		t.Errorf("decoder: %v", out.Embeddings)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	b := newEncoder(t)
	var out struct {
		Outputs []struct {
			Label  string
			Scores []float64
			Logits []float32
		}
	}
	b.must(t, &out, "classify", "--ids", "9,10", "--ids", "11,12,13", "--json")
	for i, ids := range [][]int32{{9, 10}, {11, 12, 13}} {
		want := devicetest.Classes(ids, 0, b.salt)
		got := out.Outputs[i]
		best, sum := 0, 0.0
		for k := range want {
			if want[k] > want[best] {
				best = k
			}
			sum += got.Scores[k]
		}
		if !slices.Equal(got.Logits, want) || got.Label != fmt.Sprintf("LABEL_%d", best) || math.Abs(sum-1) > 1e-9 {
			t.Errorf("%+v, expected %v", got, want)
		}
	}
	if code, stdout, _ := b.run(t.Context(), "classify", "Hi"); code != 0 || strings.Count(stdout, "LABEL_") != 3 {
		t.Errorf("exit %d, %s", code, stdout)
	}
}

// TestPrompts checks that embed puts the model's prompt in front of a text.
func TestPrompts(t *testing.T) {
	t.Parallel()
	b := newBinary(t, func(m *manifest.Manifest) {
		become(devicetest.Encoder())(m)
		m.Embedding = &manifest.Embedding{Pooling: "cls", Prompts: map[string]string{"query": "Hi ", "document": ""}, Prompt: "query"}
	})
	embed := func(args ...string) []float64 {
		var out struct{ Embeddings [][]float64 }
		b.must(t, &out, append([]string{"embed"}, args...)...)
		return out.Embeddings[0]
	}
	query, document := embed("Hi you", "--prompt-name", "document"), embed("you", "--prompt-name", "document")
	if slices.Equal(query, document) {
		t.Fatalf("the texts have the same vector %v", query)
	}
	for _, args := range [][]string{{"you"}, {"you", "--prompt-name", "query"}, {"you", "--prompt", "Hi "}} {
		if got := embed(args...); !slices.Equal(got, query) {
			t.Errorf("%q: %v, expected %v", args, got, query)
		}
	}
	if code, _, stderr := b.run(t.Context(), "embed", "you", "--prompt-name", "no"); code != 2 || !strings.Contains(stderr, "known: document, query") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// TestClassifyPair checks that classify reads the tokens of a pair of texts that
// tokenize prints. The fake encoder's classes do not depend on token types.
func TestClassifyPair(t *testing.T) {
	t.Parallel()
	b := newEncoder(t)
	var pair struct {
		IDs []int32 `json:"ids"`
	}
	b.must(t, &pair, "tokenize", "Hi", "--pair", "you")
	var out struct{ Outputs []struct{ Logits []float32 } }
	b.must(t, &out, "classify", "Hi", "--pair", "you", "--json")
	var ids struct{ Outputs []struct{ Logits []float32 } }
	b.must(t, &ids, "classify", "--ids", strings.Trim(fmt.Sprint(pair.IDs), "[]"), "--json")
	want := ids.Outputs[0].Logits
	if got := out.Outputs[0].Logits; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	if code, _, stderr := b.run(t.Context(), "classify", "--ids", "9", "--pair", "you"); code != 2 || !strings.Contains(stderr, "--pair goes with texts") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// TestWrongNetwork: subcommands that a model cannot do say in one line what it is.
func TestWrongNetwork(t *testing.T) {
	t.Parallel()
	encoder, both, decoder := newEncoder(t), newTranslator(t, nil), newBinary(t, nil)
	for _, c := range []struct {
		b    *fakeBinary
		want string
		args []string
	}{
		{encoder, "is an encoder", []string{"generate", "--ids", "9"}},
		{encoder, "is an encoder", []string{"translate", "--encoder-ids", "9"}},
		{encoder, "is an encoder", []string{"perplexity", "x"}},
		{encoder, "omit --encoder-ids", []string{"logits", "--ids", "9", "--encoder-ids", "9"}},
		{encoder, "pooled", []string{"embed", "--ids", "9", "--pooling", "pooler"}},
		{encoder, "mask token", []string{"fill", "Hi"}},
		{both, "is an encoder-decoder", []string{"generate", "--ids", "9"}},
		{both, "is an encoder-decoder", []string{"bench", "--prompt", "4", "--gen", "4"}},
		{both, "is an encoder-decoder", []string{"classify", "--ids", "9"}},
		{both, "is an encoder-decoder", []string{"fill", "Hi"}},
		{both, "expected --encoder-ids", []string{"logits", "--ids", "9"}},
		{decoder, "is a decoder", []string{"translate", "--encoder-ids", "9"}},
		{decoder, "is a decoder", []string{"fill", "Hi"}},
		{decoder, "is a decoder", []string{"classify", "--ids", "9"}},
	} {
		code, _, stderr := c.b.run(t.Context(), c.args...)
		if code != 2 || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit %d, %q, expected %q", c.args, code, stderr, c.want)
		}
	}
}

// TestFill gives the fake encoder a tokenizer whose "." is its mask.
func TestFill(t *testing.T) {
	t.Parallel()
	b := newEncoder(t)
	b.withMask(t)
	var out struct {
		Masks []struct {
			Position   int
			Candidates []struct {
				ID          int32
				Token, Text string
				Probability float64
			}
		}
	}
	b.must(t, &out, "fill", "Hi.you[MASK]", "--json", "--top-k", "4")
	ids := append([]int32{1}, b.tok.Encode("Hi.you.", true)...)
	if len(out.Masks) != 2 || out.Masks[0].Position != 3 || out.Masks[1].Position != 7 {
		t.Fatalf("%+v after %v", out, ids)
	}
	for _, m := range out.Masks {
		row := devicetest.Masked(ids, nil, m.Position, b.salt)
		sum := 0.0
		for _, l := range row {
			sum += math.Exp(float64(l))
		}
		last := math.Inf(1)
		for _, c := range m.Candidates {
			if want := math.Exp(float64(row[c.ID])) / sum; math.Abs(c.Probability-want) > 1e-6 || c.Probability > last || c.Token != b.tok.Token(c.ID) {
				t.Errorf("%+v, expected probability %v", c, want)
			}
			last = c.Probability
		}
		if len(m.Candidates) != 4 || row[m.Candidates[0].ID] != slices.Max(row) {
			t.Errorf("candidates %+v", m.Candidates)
		}
	}
	if code, _, stderr := b.run(t.Context(), "fill", "Hi"); code != 2 || !strings.Contains(stderr, "no mask") {
		t.Errorf("no mask: exit %d, %s", code, stderr)
	}
}

// TestLogitScore checks that a decoder with a LogitScore scores a text by the logits of the
// next token.
func TestLogitScore(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	var logits struct{ Logits [][]float64 }
	b.must(t, &logits, "logits", "--ids", "9,10,11")
	no := 12
	for _, c := range []struct {
		score *manifest.LogitScore
		want  float64
	}{
		{&manifest.LogitScore{True: 9}, logits.Logits[0][9]},
		{&manifest.LogitScore{True: 9, False: &no}, logits.Logits[0][9] - logits.Logits[0][12]},
	} {
		var out struct {
			Outputs []struct{ Scores, Logits []float64 }
		}
		newBinary(t, func(m *manifest.Manifest) { m.Score = c.score }).must(t, &out, "classify", "--ids", "9,10,11", "--json")
		got := out.Outputs[0]
		if len(got.Logits) != 1 || math.Abs(got.Logits[0]-c.want) > 1e-5 || math.Abs(got.Scores[0]-1/(1+math.Exp(-c.want))) > 1e-5 {
			t.Errorf("%+v: %+v, want the logit %g", c.score, got, c.want)
		}
	}
}
