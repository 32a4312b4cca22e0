package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// expected is what transformers computes from a model, in the form that
// tools/gen/reference/record.py writes.
type expected struct {
	Inputs struct {
		Prompt struct {
			IDs             []int `json:"ids"`
			LogitsPositions []int `json:"logits_positions"`
		} `json:"prompt"`
		Batch struct {
			IDs [][]int `json:"ids"`
		} `json:"batch"`
	} `json:"inputs"`
	IDs struct {
		Greedy      []int   `json:"greedy"`
		BatchGreedy [][]int `json:"batch.greedy"`
	} `json:"ids"`
	Arrays    map[string]array `json:"arrays"`
	Tokenizer struct {
		Cases []struct {
			Text    string `json:"text"`
			IDs     []int  `json:"ids"`
			Plain   []int  `json:"ids_plain"`
			Decoded string `json:"decoded"`
			Skipped string `json:"decoded_skip_special"`
		} `json:"cases"`
	} `json:"tokenizer"`
}

// An array holds little-endian float32 values.
type array struct {
	Shape []int  `json:"shape"`
	Data  string `json:"f32_b64"`
}

// floats gives the values of an array, rows after rows.
func (a array) floats(t *testing.T) []float64 {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(a.Data)
	if err != nil {
		t.Fatal(err)
	}
	var out []float64
	for ; len(raw) >= 4; raw = raw[4:] {
		out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))))
	}
	return out
}

func demoExpected(t *testing.T) *expected {
	t.Helper()
	text, err := os.ReadFile("../../models/testdata/demo/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var e expected
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	return &e
}

// near holds the rows of logits to the reference, within 1e-4 of its largest
// value and 1e-4 besides.
func near(t *testing.T, what string, got [][]float64, want []float64) {
	t.Helper()
	flat := slices.Concat(got...)
	if len(flat) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(flat), len(want))
	}
	largest, worst := 0.0, 0.0
	for i, w := range want {
		largest = max(largest, math.Abs(w))
		worst = max(worst, math.Abs(flat[i]-w))
	}
	if limit := 1e-4 + 1e-4*largest; !(worst <= limit) {
		t.Errorf("%s: off by %g, more than %g", what, worst, limit)
	}
}

// TestDemoLikeTransformers: the compiled demo model gives the logits and the
// greedy tokens that transformers gives.
func TestDemoLikeTransformers(t *testing.T) {
	t.Parallel()
	bin, e := demo(t), demoExpected(t)
	var out struct {
		Logits [][]float64 `json:"logits"`
	}
	last := len(e.Inputs.Prompt.IDs) - e.Inputs.Prompt.LogitsPositions[0]
	decode(t, call(t, nil, bin, "logits", "--ids", join(e.Inputs.Prompt.IDs), "--last", itoa(last)).succeed(t), &out)
	near(t, "prompt", out.Logits, e.Arrays["prompt.logits"].floats(t))

	batch := e.Arrays["batch.logits"]
	values, vocab := batch.floats(t), batch.Shape[1]
	for i, ids := range e.Inputs.Batch.IDs {
		decode(t, call(t, nil, bin, "logits", "--ids", join(ids)).succeed(t), &out)
		near(t, join(ids), out.Logits, values[i*vocab:(i+1)*vocab])
		var gen struct {
			Tokens []int `json:"tokens"`
		}
		want := e.IDs.BatchGreedy[i]
		decode(t, call(t, nil, bin, "generate", "--ids", join(ids), "-n", itoa(len(want)), "--temp", "0", "--ignore-eos", "--json").succeed(t), &gen)
		if !slices.Equal(gen.Tokens, want) {
			t.Errorf("continuation of %v is\n%v, want\n%v", ids, gen.Tokens, want)
		}
	}
}

// TestDemoTokenizer: the binary's tokenizer is the model's own.
func TestDemoTokenizer(t *testing.T) {
	t.Parallel()
	bin, e := demo(t), demoExpected(t)
	dir := t.TempDir()
	for i, c := range e.Tokenizer.Cases {
		file := filepath.Join(dir, itoa(i))
		if err := os.WriteFile(file, []byte(c.Text), 0o644); err != nil {
			t.Fatal(err)
		}
		var out struct {
			IDs    []int    `json:"ids"`
			Tokens []string `json:"tokens"`
		}
		decode(t, call(t, nil, bin, "tokenize", "-f", file).succeed(t), &out)
		if !slices.Equal(out.IDs, c.IDs) || len(out.Tokens) != len(c.IDs) {
			t.Errorf("%q: %v, want %v", c.Text, out.IDs, c.IDs)
		}
		if len(c.IDs) == 0 || i%4 != 0 {
			continue // one process a case: a sample is enough here
		}
		var text struct {
			Text string `json:"text"`
		}
		decode(t, call(t, nil, bin, "detokenize", join(c.IDs), "--skip-special").succeed(t), &text)
		if text.Text != c.Skipped {
			t.Errorf("%v: %q, want %q", c.IDs, text.Text, c.Skipped)
		}
	}
}
