package pack

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// TestStoredValues checks that a weight in the type that a file's tensor has by default gets
// the approximation, and in any other type what the file stores: in f32 exactly.
func TestStoredValues(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gptq4_desc", "gptq4_asym", "awq", "fp8_row", "nvfp4", "int8", "bnb_nf4", "hqq4"} {
		set, err := checkpoint.Open(filepath.Join("..", "..", "spec", "checkpoint", "testdata", "quantized", name))
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		src, w := Source{Set: set}, tensor.Source("l.weight")
		info, _ := set.Lookup("l.weight")
		stored, err := set.Bytes("l.weight")
		if err != nil {
			t.Fatal(err)
		}
		want, err := set.Float32("want")
		if err != nil {
			t.Fatal(err)
		}
		same, err := evalTo(src, w, nil, info.DType)
		if err != nil || !bytes.Equal(same.Bytes(), stored) {
			t.Errorf("%s: %s is not the stored one (%v)", name, info.DType, err)
		}
		halves := op("concat", nil, op("rows", []float64{0, 4}, w), op("rows", []float64{4, 8}, w))
		d, err := Eval(src, quantizeTo(tensor.F32, halves), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range d.Float32() {
			if diff := x - want[i]; diff > 1e-6 || diff < -1e-6 {
				t.Errorf("%s in f32: element %d is %v, want %v", name, i, x, want[i])
				break
			}
		}
	}
}
