package weights_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/weights"
)

// TestMoments: products of columns come back as they were written, and recipes
// over the set then encode as tensor.EncodeFeedback does; types that hold the
// stored values, and matrices without products, stay as they were.
func TestMoments(t *testing.T) {
	t.Parallel()
	const cols, width = 128, 64
	set, err := weights.Open(filepath.Join("testdata", "quantised", "gptq4_desc"))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	sums := make([]float32, cols/width*width*width)
	for i := range sums {
		sums[i] = 0.3
		if i%(width+1) == 0 {
			sums[i] = 1
		}
	}
	path := filepath.Join(t.TempDir(), "importance")
	imp := weights.Importance{"want": make([]float32, cols)}
	if err := weights.WriteImportance(path, imp, map[string]weights.Squares{"want": {Width: width, Sums: sums}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if back, err := weights.ReadImportance(path); err != nil || len(back) != 1 {
		t.Fatalf("importance beside products: %d matrices, %v; expected 1", len(back), err)
	}
	moments, err := weights.OpenMoments(path)
	if err != nil || moments.Digest() == "" {
		t.Fatal(moments, err)
	}
	bytes := func(dt tensor.DType) []byte {
		d, err := weights.Eval(set, &tensor.Recipe{Op: "quantize", Args: []*tensor.Recipe{tensor.Source("want")}, Type: dt}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d.Bytes()
	}
	half := bytes(tensor.F16)
	set.FeedBack(moments)
	if !slices.Equal(bytes(tensor.F16), half) {
		t.Error("f16: products of columns changed what is stored")
	}
	f, err := tensor.NewFeedback(sums, width, cols)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := set.Float32("want")
	if err != nil {
		t.Fatal(err)
	}
	for _, dt := range []tensor.DType{tensor.Q8B32T2, tensor.Q4B64, tensor.Q3HB64} {
		got, size := bytes(dt), dt.RowBytes(cols)
		for r := 0; r*cols < len(rows); r++ {
			want := make([]byte, size)
			if err := tensor.EncodeFeedback(want, dt, slices.Clone(rows[r*cols:(r+1)*cols]), f); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got[r*size:(r+1)*size], want) {
				t.Fatalf("%s: row %d is not what feedback gives", dt, r)
			}
		}
	}
}

// TestMomentsRefused: a file without products gives none, one whose products
// are no numbers an error.
func TestMomentsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "importance")
	if err := weights.WriteImportance(path, weights.Importance{"want": {1, 2}}, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if m, err := weights.OpenMoments(path); m != nil || err != nil {
		t.Errorf("without products: %v, %v", m, err)
	}
	if err := os.WriteFile(path, []byte("no safetensors"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := weights.OpenMoments(path); err == nil {
		t.Error("not a file of tensors: accepted")
	}
}
