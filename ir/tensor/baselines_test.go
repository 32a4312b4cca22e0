package tensor

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// baselineValues returns the numbers of tools/gen/reference/block_errors.py.
func baselineValues(outliers bool) []float32 {
	out := make([]float32, 1<<14)
	state := uint64(12345)
	for i := range out {
		total := 0
		for range 8 {
			state = state*6364136223846793005 + 1442695040888963407
			total += int(state >> 52)
		}
		out[i] = float32(total-16384) * 0x1p-17
		if outliers && i%50 == 0 {
			out[i] *= 8
		}
	}
	return out
}

// TestNoWorseThanBaselines checks that no type has a larger error than llama.cpp's type
// of the same size, as encoded by gguf-py's reference encoders and measured by
// tools/gen/reference/block_errors.py. The plain rule on q4_b32 and q8_b32t2 must have
// the error of q4_1 and q8_0.
func TestNoWorseThanBaselines(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/ggml_errors.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded map[string]map[string]float64
	if err := json.Unmarshal(raw, &recorded); err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"gaussian", "outliers"} {
		src := baselineValues(set == "outliers")
		rms := func(back []float32) float64 { return math.Sqrt(squaredError(src, back, nil) / float64(len(src))) }
		for _, c := range []struct {
			ours   DType
			theirs string
			same   bool // same rule, same error
		}{
			{Q8B32T2, "q8_0", true}, {Q5B64, "q5_0", false}, {Q4B32, "q4_1", true}, {Q4B64, "q4_0", false},
		} {
			baseline, ok := recorded[set][c.theirs]
			if !ok {
				t.Fatalf("testdata has no %s of %s", c.theirs, set)
			}
			got := rms(decode(t, c.ours, encode(t, c.ours, src)))
			t.Logf("%s: %s %.4g, %s %.4g: %.3f", set, c.ours, got, c.theirs, baseline, got/baseline)
			if got > baseline {
				t.Errorf("%s: %s errs by %.5g, %s of the same size by %.5g", set, c.ours, got, c.theirs, baseline)
			}
			if plain := rms(decode(t, c.ours, encodePlain(t, c.ours, src))); c.same && math.Abs(plain/baseline-1) > 2e-3 {
				t.Errorf("%s: plain %s errs by %.5g, %s by %.5g", set, c.ours, plain, c.theirs, baseline)
			}
		}
	}
}
