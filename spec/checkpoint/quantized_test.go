package checkpoint_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// quantizedCases are the folders of testdata/quantized.
var quantizedCases = []struct {
	dir  string
	dt   tensor.DType
	tol  float64 // tolerance, relative to the largest value
	note string
}{
	{"gptq2", tensor.Q2B32, 0, ""},
	{"gptq3", tensor.Q3B32, 1.0 / 2048, ""},
	{"gptq4", tensor.Q4B64, 0, ""},
	{"gptq4_asym", tensor.Q4B64, 1.0 / 2048, ""},
	{"gptq4_v2", tensor.Q4B64, 1.0 / 2048, ""},
	{"gptq4_desc", tensor.Q8B32T2, 1.0 / 200, "desc_act"},
	{"gptq8", tensor.Q8B64, 0, ""},
	{"awq", tensor.Q4B64, 1.0 / 2048, ""},
	{"compressed", tensor.Q4B64, 0, ""},
	{"fp8_row", tensor.F16, 1.0 / 2048, "8-bit floats"},
	{"fp8_tensor", tensor.F16, 1.0 / 2048, "8-bit floats"},
	{"fp8_block", tensor.F16, 1.0 / 2048, "8-bit floats"},
	{"fp8_e5m2", tensor.F16, 1.0 / 2048, "8-bit floats"},
	{"fp8_scale", tensor.BF16, 0, "8-bit floats"},
	{"fp8_experts", tensor.F16, 1.0 / 2048, "8-bit floats"},
	{"fp8_experts_block", tensor.F16, 1.0 / 2048, "8-bit floats"},
	{"mxfp8", tensor.BF16, 0, "8-bit floats"},
	{"fp4_scale", tensor.BF16, 0, "4-bit floats"},
	{"mxfp4", tensor.BF16, 0, "4-bit floats"},
	{"nvfp4", tensor.F16, 1.0 / 2048, "4-bit floats"},
	{"nvfp4_modelopt", tensor.F16, 1.0 / 2048, "4-bit floats"},
	{"int8", tensor.F16, 1.0 / 2048, "8-bit integers"},
	{"gptq4_zeros", tensor.Q4B64, 0, ""},
	{"gptq4_v2_zeros", tensor.Q4B64, 0, ""},
	{"gptq4_no_index", tensor.Q4B64, 0, ""},
	{"compressed_no_index", tensor.Q4B64, 0, ""},
	{"compressed_zeros", tensor.Q4B64, 1.0 / 2048, ""},
	{"compressed_zeros_i8", tensor.Q4B64, 1.0 / 2048, ""},
	{"bnb_nf4", tensor.Q8B32T2, 1.0 / 200, "NF4"},
	{"bnb_fp4_nested", tensor.Q8B32T2, 1.0 / 200, "FP4"},
	{"bnb_int8", tensor.F16, 1.0 / 2048, "8-bit integers"},
	{"hqq4", tensor.Q4B64, 1.0 / 2048, ""},
	{"hqq3", tensor.Q3B32, 1.0 / 2048, ""},
	{"hqq2", tensor.Q2B32, 1.0 / 2048, ""},
	{"hqq1", tensor.Q2B32, 1.0 / 2048, ""},
	{"hqq8", tensor.Q8B64, 1.0 / 2048, ""},
	{"hqq4_axis0", tensor.Q8B32T2, 1.0 / 200, "axis 0"},
}

// TestQuantized compares quantized matrices with the results of independent
// unpackers (tools/gen/reference/quantized.py): their values exactly, and the stored
// type, of which only the base −scale·zero is rounded to f16 if codes are kept;
// otherwise there must be a note.
func TestQuantized(t *testing.T) {
	t.Parallel()
	for _, c := range quantizedCases {
		set, err := checkpoint.Open(filepath.Join("testdata", "quantized", c.dir))
		if err != nil {
			t.Errorf("%s: %v", c.dir, err)
			continue
		}
		defer set.Close()
		if n := len(set.Tensors()); n != 2 {
			t.Errorf("%s: %d tensors, expected the matrix and what it should be", c.dir, n)
		}
		if notes := strings.Join(set.Notes(), "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: notes %q", c.dir, notes)
		}
		if i, _ := set.Lookup("l.weight"); i.DType != c.dt {
			t.Errorf("%s: %s of shape %v, expected %s", c.dir, i.DType, i.Shape, c.dt)
		}
		got, err := set.Float32("l.weight")
		want, err2 := set.Float32("want")
		if err != nil || err2 != nil || len(got) != len(want) {
			t.Errorf("%s: %v, %v, %d and %d values", c.dir, err, err2, len(got), len(want))
			continue
		}
		if off := worst(got, want); off > 1e-6 {
			t.Errorf("%s: values off by %v of the largest one", c.dir, off)
		}
		raw, err := set.Bytes("l.weight")
		if err == nil {
			err = tensor.Decode(got, c.dt, raw)
		}
		if off := worst(got, want); err != nil || off > c.tol {
			t.Errorf("%s: as stored: off by %v of the largest value, at most %v (%v)", c.dir, off, c.tol, err)
		}
	}
}

// worst returns the largest difference, relative to the largest value.
func worst(got, want []float32) float64 {
	top, off := 0.0, 0.0
	for i, w := range want {
		top = max(top, math.Abs(float64(w)))
		off = max(off, math.Abs(float64(got[i]-w)))
	}
	return off / top
}

// TestQuantizedErrors checks that unsupported inputs are reported in one line.
func TestQuantizedErrors(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(filepath.Join("testdata", "quantized", "gptq4", "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, with, want string }{
		{`"l.qzeros"`, `"l.pzeros"`, "l.qweight has no matching l.qzeros"},
		{`"l.scales"`, `"l.scalez"`, "l.qweight has no matching l.scales"},
		{`"l.qweight"`, `"a.SCB    "`, ""},
		{`"l.g_idx"`, `"x.g_idx"`, ""},
	} {
		data := strings.Replace(string(whole), c.old, c.with, 1)
		path := filepath.Join(t.TempDir(), "model.safetensors")
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := checkpoint.Open(path)
		if err == nil {
			set.Close()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s for %s: %v, expected %q", c.with, c.old, err, c.want)
		}
	}
	path := filepath.Join(t.TempDir(), "bnb.safetensors")
	head := `{"l.weight":{"dtype":"U8","shape":[2,1],"data_offsets":[0,2]},"l.weight.absmax":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`
	data := append([]byte{byte(len(head)), 0, 0, 0, 0, 0, 0, 0}, head+"abc"...)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Open(path); err == nil || !strings.Contains(err.Error(), "no matching l.weight.quant_map") {
		t.Errorf("bitsandbytes: %v", err)
	}
}
