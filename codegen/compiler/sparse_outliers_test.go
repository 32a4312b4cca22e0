package compiler

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/engine"
)

// sparseProgram is the demo model with a fraction of its weights as sparse
// outliers.
func sparseProgram(t *testing.T, quant string, share float64, target string) (*Program, error) {
	t.Helper()
	return generate("../../models/demo.yaml", Options{Target: target, Quant: quant, SparseOutliers: share})
}

// TestSparseOutliers: a model with sparse outliers computes what the
// interpreter does, the same bits whatever the chunks, the threads and the
// batch, and is nearer to the model in full precision than without them.
func TestSparseOutliers(t *testing.T) {
	t.Parallel()
	long := prompt(70, 1)
	exact := logitsOf(t, demoModel(t, "f32", nil), engine.Options{Threads: 1}, [][]int32{long})[0]
	for _, quant := range sampleTypes(t, []string{"q4_b64", "q3h_b64", "q4_b32"}, plainType) {
		t.Run(quant, func(t *testing.T) {
			p, err := sparseProgram(t, quant, 0.03, "cpu")
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			kept := 0
			for _, w := range p.whole.CPU.Manifest.Weights {
				kept += w.SparseOutliers
			}
			if kept == 0 {
				t.Fatal("no matrix has sparse outliers")
			}
			m := loaded(t, p)
			want := logitsOf(t, m, engine.Options{Threads: 1}, [][]int32{long})[0]
			for _, chunk := range []int{1, 7, 17, 64} {
				got := logitsOf(t, m, engine.Options{Threads: 2, MaxTokens: chunk}, [][]int32{long})[0]
				sameBits(t, fmt.Sprintf("chunks of %d", chunk), got, want)
			}
			together := logitsOf(t, m, engine.Options{Threads: 2, MaxTokens: 100}, [][]int32{prompt(9, 5), long, prompt(20, 7)})
			sameBits(t, "in a batch", together[1], want)
			without := demoModel(t, quant, nil)
			plain := logitsOf(t, without, engine.Options{Threads: 1}, [][]int32{long})[0]
			if a, b := distance(want, exact), distance(plain, exact); a > 0.9*b {
				t.Errorf("logits are %.4f from those of f32 with sparse outliers, %.4f without", a, b)
			}
			var expected []float32
			for _, x := range lastLogits(t, p, long[:6]) {
				expected = append(expected, float32(x))
			}
			opt := engine.Options{Threads: 1}
			if a, b := distance(lastRow(t, m, long[:6], opt), expected), distance(lastRow(t, without, long[:6], opt), expected); a > 0.1*b {
				t.Errorf("logits are %.4f from the interpreter's, and without sparse outliers %.4f", a, b)
			}
		})
	}
}

// distance is the root of the mean square difference.
func distance(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i] - b[i])
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(a)))
}

func TestSparseOutliersAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		share float64
		want  string
	}{{0.06, "delta_tensor_ratio: have 0.06, want a fraction of the weights from 0 to 0.05"}, {-1, "have -1"}} {
		if _, err := sparseProgram(t, "q4_b64", c.share, "cpu"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a fraction of %v: error %v, want %q in it", c.share, err, c.want)
		}
	}
}
