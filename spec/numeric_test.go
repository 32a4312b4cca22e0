package spec

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/weights"
)

var familyDir = flag.String("families", "testdata/families", "folder of model folders with an expected.json, as made by testdata/families/make.py")

// TestFamilies lowers tiny models of each family and compares the
// interpreter's logits with those of Hugging Face transformers.
func TestFamilies(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(*familyDir, "*", "expected.json"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no models in %s: %v", *familyDir, err)
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			var want struct {
				IDs    []int
				Logits [][]float64
			}
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			compareLogits(t, interpret(t, dir, want.IDs, len(want.Logits)), want.Logits)
		})
	}
}

// interpret runs the folder's model on ids, the first half and then the rest,
// and gives the logits of the last positions.
func interpret(t *testing.T, dir string, ids []int, last int) []float64 {
	t.Helper()
	s, err := Load(dir, Options{Quant: "f32"})
	if err != nil {
		t.Fatal(err)
	}
	set, err := s.OpenWeights()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	m, err := Resolve(s, HeadersOf(set))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := Lower(m)
	if err != nil {
		t.Fatal(err)
	}
	values, states := interp.NewWeights(mod, storedTensors(set)), interp.NewStates()
	half := len(ids) / 2
	wanted := make([]int, last)
	for i := range wanted {
		wanted[i] = len(ids) - half - last + i
	}
	if _, err := interp.Run(mod, "decode", &interp.Step{IDs: ids[:half]}, values, states); err != nil {
		t.Fatal(err)
	}
	out, err := interp.Run(mod, "decode", &interp.Step{IDs: ids[half:], Wanted: wanted}, values, states)
	if err != nil {
		t.Fatal(err)
	}
	return out[0].F
}

func storedTensors(set *weights.Set) interp.Source {
	return func(name string) (*tensor.Tensor, error) {
		values, err := set.Float32(name)
		if err != nil {
			return nil, err
		}
		info, _ := set.Lookup(name)
		out := tensor.New(info.DType, info.Shape...)
		for i, x := range values {
			out.F[i] = float64(x)
		}
		return out, nil
	}
}

func compareLogits(t *testing.T, got []float64, want [][]float64) {
	t.Helper()
	worst, largest, n := 0.0, 0.0, 0
	for _, row := range want {
		for _, w := range row {
			if n >= len(got) {
				t.Fatalf("have %d logits, want more", len(got))
			}
			worst, largest = math.Max(worst, math.Abs(got[n]-w)), math.Max(largest, math.Abs(w))
			n++
		}
	}
	if n != len(got) {
		t.Fatalf("have %d logits, want %d", len(got), n)
	}
	if limit := 1e-4 + 1e-4*largest; !(worst <= limit) {
		t.Errorf("logits differ by %.2e from transformers, want at most %.2e", worst, limit)
	}
}
