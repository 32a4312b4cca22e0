//go:build unix

package cli_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// TestPerplexity compares with the definition, computed from the fake model's
// formula, with and without a start token, for windows that overlap or not.
func TestPerplexity(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("The cat sat on a mat. ", 9)
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, bos := range []bool{true, false} {
		b := newBinary(t, func(m *manifest.Manifest) { m.AddBOS = bos })
		ids := b.tok.Encode(text, false)
		for _, c := range []struct{ context, stride int }{{32, 32}, {32, 8}, {64, 512}, {500, 500}} {
			nlls := referenceNLL(ids, bos, c.context, c.stride, b.salt)
			sum, sq := 0.0, 0.0
			for _, x := range nlls {
				sum += x
			}
			mean := sum / float64(len(nlls))
			for _, x := range nlls {
				sq += (x - mean) * (x - mean)
			}
			stderr := math.Exp(mean) * math.Sqrt(sq/float64(len(nlls)-1)/float64(len(nlls)))
			var out struct {
				Perplexity, StdErr, NLL float64
				Tokens                  int
			}
			b.must(t, &out, "perplexity", file, "--context", fmt.Sprint(c.context), "--stride", fmt.Sprint(c.stride), "--json")
			if out.Tokens != len(nlls) || math.Abs(out.NLL-mean) > 1e-9 || math.Abs(out.Perplexity-math.Exp(mean)) > 1e-6*out.Perplexity || math.Abs(out.StdErr-stderr) > 1e-6*stderr {
				t.Errorf("bos %v %+v: %+v, expected %d tokens, nll %v, stderr %v", bos, c, out, len(nlls), mean, stderr)
			}
		}
	}
}

// referenceNLL scores each token from the longest prefix its window gives it.
func referenceNLL(ids []int32, bos bool, context, stride int, salt byte) []float64 {
	size := context
	var start []int32
	if bos {
		size, start = context-1, []int32{1}
	}
	stride = min(stride, size)
	var out []float64
	scored := 0
	for from := 0; scored < len(ids); from += stride {
		to := min(from+size, len(ids))
		for i := scored; i < to; i++ {
			prefix := append(slices.Clone(start), ids[from:i]...)
			if len(prefix) == 0 {
				continue
			}
			out = append(out, fakeNLL(prefix, ids[i], salt))
		}
		scored = to
	}
	return out
}

// fakeNLL is the loss of a token after a prefix, by the fake model's formula.
func fakeNLL(prefix []int32, token int32, salt byte) float64 {
	row := devicetest.Logits(prefix, salt)
	shift := 0.0
	if prefix[len(prefix)-1] == devicetest.StopID {
		shift = 1e6
	}
	sum := 0.0
	for _, l := range row {
		sum += math.Exp(float64(l) - shift)
	}
	return math.Log(sum) + shift - float64(row[token])
}

// TestPerplexityChunks compares --protocol llama.cpp with that tool's rule,
// spelled out: of every whole chunk, positions context/2 … context-2 predict
// the token after their own.
func TestPerplexityChunks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte(strings.Repeat("The cat sat on a mat. ", 9)), 0o644); err != nil {
		t.Fatal(err)
	}
	const context = 32
	for _, bos := range []bool{true, false} {
		b := newBinary(t, func(m *manifest.Manifest) { m.AddBOS = bos })
		tokens := b.tok.Encode(strings.Repeat("The cat sat on a mat. ", 9), false)
		if bos {
			tokens = append([]int32{1}, tokens...)
		}
		sum, n := 0.0, 0
		for i := range len(tokens) / context {
			chunk := slices.Clone(tokens[i*context : (i+1)*context])
			if bos {
				chunk[0] = 1
			}
			for j := context / 2; j < context-1; j++ {
				sum += fakeNLL(chunk[:j+1], chunk[j+1], b.salt)
				n++
			}
		}
		var out struct {
			NLL    float64
			Tokens int
		}
		b.must(t, &out, "perplexity", file, "--context", fmt.Sprint(context), "--protocol", "llama.cpp", "--json")
		if out.Tokens != n || math.Abs(out.NLL-sum/float64(n)) > 1e-9 {
			t.Errorf("bos %v: %+v, expected %d tokens and nll %v", bos, out, n, sum/float64(n))
		}
		if code, _, stderr := b.run(t.Context(), "perplexity", file, "--context", "500", "--protocol", "llama.cpp"); code != 2 || !strings.Contains(stderr, "expected 500 or more") {
			t.Errorf("a text shorter than a chunk: exit %d, %q", code, stderr)
		}
	}
}
