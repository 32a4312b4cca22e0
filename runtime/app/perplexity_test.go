//go:build unix

package app_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/load/loadtest"
	"github.com/iflowc/iflowc/runtime/manifest"
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
			row := loadtest.Logits(prefix, salt)
			sum := 0.0
			for _, l := range row {
				sum += math.Exp(float64(l) - 1e6*map[bool]float64{true: 1}[prefix[len(prefix)-1] == loadtest.StopID])
			}
			shift := 1e6 * map[bool]float64{true: 1}[prefix[len(prefix)-1] == loadtest.StopID]
			out = append(out, math.Log(sum)+shift-float64(row[ids[i]]))
		}
		scored = to
	}
	return out
}
