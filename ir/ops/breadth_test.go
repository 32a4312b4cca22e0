package ops_test

import (
	"math"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// close32 compares with numbers computed in float32.
func close32(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, expected %v", what, got, want)
	}
	for i, w := range want {
		if d := math.Abs(got[i] - w); !(d <= 2e-6*(1+math.Abs(w))) {
			t.Fatalf("%s: entry %d: %v, expected %v", what, i, got, want)
		}
	}
}

// TestRoute compares with the routers of DeepSeek-V3, DeepSeek-V2, gpt-oss and Mixtral
// in transformers, with the identity as weight. The cases include equal logits,
// excluded groups with scores below 0, and a bias that changes the choice.
func TestRoute(t *testing.T) {
	t.Parallel()
	logits := f32(8, 0.5, -1.25, 2, 0.75, -0.5, 1.5, 0.25, -2, 1, 1, -0.75, 0.125, 0, -0.25, 0.875, 0.5)
	bias := weight{vec(0, 0.5, -1.5, 0.125, 0.25, -0.75, -1.25, 0.375)}
	for _, c := range []struct {
		name  string
		attrs ir.Attrs
		args  []any
		want  []float64
	}{
		{
			"sigmoid in groups by their two best",
			attr("top_k", 3, "score", "sigmoid", "norm", true, "scale", 2.5, "groups", 4, "top_groups", 2, "group_score", "top2"),
			[]any{logits, bias},
			[]float64{1.27271473, 0.455344945, 0, 0, 0.77194041, 0, 0, 0, 0.876747072, 0.876747072, 0, 0, 0, 0, 0, 0.746505737},
		},
		{
			"softmax in groups by their best",
			attr("top_k", 3, "scale", 16.0, "groups", 4, "top_groups", 2),
			[]any{logits},
			[]float64{0, 0, 6.58676291, 1.8871392, 0, 3.9950738, 0, 0, 3.37977147, 3.37977147, 0, 0, 0, 0, 2.98263788, 0},
		},
		{
			"softmax of the chosen",
			attr("top_k", 3, "score", "softmax_topk"),
			[]any{logits},
			[]float64{0, 0, 0.528252125, 0.151346773, 0, 0.320401102, 0, 0, 0.346921444, 0.346921444, 0, 0, 0, 0, 0.306157082, 0},
		},
		{
			"sparsemixer, near",
			attr("top_k", 2, "score", "sparsemixer", "jitter", 0.3),
			[]any{logits},
			[]float64{0, 0, 0.622459352, 0, 0, 0.679178715, 0, 0, 0.286612809, 0.401763350, 0, 0, 0, 0, 0, 0},
		},
		{
			"sparsemixer, all below 0",
			attr("top_k", 2, "score", "sparsemixer"),
			[]any{f32(8, -3, -1, -1.01, -2, -1.005, -4, -1.02, -9)},
			[]float64{0, 0.252190202, 0, 0, 0.335556448, 0, 0, 0},
		},
		{
			"softmax, then divided by the sum",
			attr("top_k", 2, "norm", true),
			[]any{logits},
			[]float64{0, 0, 0.622459352, 0, 0, 0.377540678, 0, 0, 0.5, 0.5, 0, 0, 0, 0, 0, 0},
		},
	} {
		close32(t, c.name, apply(t, ops.Route, c.attrs, c.args...)[0].F, c.want)
	}
	near(t, "all experts", apply(t, ops.Route, attr("top_k", 2), f32(2, math.Log(3), 0))[0], 0.75, 0.25)
	near(t, "of equal ones the first", apply(t, ops.Route, attr("top_k", 2, "score", "sigmoid"), f32(4, 0, 0, 0, 0))[0], 0.5, 0.5, 0, 0)
}

// TestSinusoid compares with M2M-100 and Marian in transformers.
func TestSinusoid(t *testing.T) {
	t.Parallel()
	m2m := []float64{
		0.141120002, 0.0299954992, 0.000299999956, -0.989992499, 0.999550045, 0.99999994,
		-0.158622667, 0.39860934, 0.00409998791, -0.987339258, 0.917120814, 0.999991596,
	}
	close32(t, "half_minus_1", apply(t, ops.Sinusoid, attr("dim", 6, "offset", 2), ints(1, 39))[0].F, m2m)
	marian := []float64{
		0.141120002, 0.138798103, 0.00646325899, -0.989992499, 0.990320683, 0.999979138,
		-0.158622667, 0.945309162, 0.0882169977, -0.987339258, -0.32617563, 0.99610126,
	}
	close32(t, "dim", apply(t, ops.Sinusoid, attr("dim", 6, "exponent", "dim"), ints(3, 41))[0].F, marian)
	near(t, "pairs", apply(t, ops.Sinusoid, attr("dim", 4, "exponent", "dim", "layout", "pairs"), ints(3))[0],
		math.Sin(3), math.Cos(3), math.Sin(0.03), math.Cos(0.03))
}

func TestHeads(t *testing.T) {
	t.Parallel()
	a, b := f32(4, 1, 2, 3, 4, 5, 6, 7, 8), f32(2, -1, -2, -3, -4)
	near(t, "one head for all", apply(t, ops.JoinHeads, attr("heads", 2), a, b)[0], 1, 2, -1, -2, 3, 4, -1, -2, 5, 6, -3, -4, 7, 8, -3, -4)
	near(t, "head by head", apply(t, ops.JoinHeads, attr("heads", 2, "b_heads", 2), a, b)[0], 1, 2, -1, 3, 4, -2, 5, 6, -3, 7, 8, -4)
	joined := apply(t, ops.JoinHeads, attr("heads", 2, "b_heads", 2), a, b)[0]
	near(t, "first columns", apply(t, ops.HeadCols, attr("heads", 2, "lo", 0, "hi", 2), joined)[0], a.F...)
	near(t, "last columns", apply(t, ops.HeadCols, attr("heads", 2, "lo", 2, "hi", 3), joined)[0], b.F...)
}

// TestRelBucket compares the distances where the bucket changes with T5 in transformers.
// At 16 = 8·2, 32 and 64 the logarithms are integers except for float32 rounding.
func TestRelBucket(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		buckets, limit int
		both           bool
		lowest         int // bucket of far earlier keys
		steps          [][2]int
	}{
		{32, 128, true, 15, [][2]int{
			{-90, 14}, {-63, 13}, {-45, 12}, {-31, 11}, {-22, 10}, {-15, 9}, {-11, 8}, {-7, 7}, {-6, 6}, {-5, 5}, {-4, 4}, {-3, 3}, {-2, 2}, {-1, 1}, {0, 0}, {1, 17}, {2, 18}, {3, 19},
			{4, 20}, {5, 21}, {6, 22}, {7, 23}, {8, 24}, {12, 25}, {16, 26}, {23, 27}, {32, 28}, {46, 29}, {64, 30}, {91, 31},
		}},
		{32, 128, false, 31, [][2]int{
			{-112, 30}, {-98, 29}, {-86, 28}, {-76, 27}, {-66, 26}, {-58, 25}, {-51, 24}, {-45, 23}, {-39, 22}, {-34, 21}, {-30, 20}, {-26, 19}, {-23, 18}, {-20, 17}, {-18, 16}, {-15, 15},
			{-14, 14}, {-13, 13}, {-12, 12}, {-11, 11}, {-10, 10}, {-9, 9}, {-8, 8}, {-7, 7}, {-6, 6}, {-5, 5}, {-4, 4}, {-3, 3}, {-2, 2}, {-1, 1}, {0, 0},
		}},
		{8, 20, true, 3, [][2]int{{-6, 2}, {-1, 1}, {0, 0}, {1, 5}, {2, 6}, {7, 7}}},
	} {
		want := c.lowest
		for d := -1500; d <= 1500; d++ {
			if i := slices.IndexFunc(c.steps, func(s [2]int) bool { return s[0] == d }); i >= 0 {
				want = c.steps[i][1]
			}
			if got := ops.RelBucket(d, c.buckets, c.limit, c.both); got != want {
				t.Fatalf("%d buckets up to %d, both ways %v: distance %d is in bucket %d, expected %d", c.buckets, c.limit, c.both, d, got, want)
			}
		}
	}
}
