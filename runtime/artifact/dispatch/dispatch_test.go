package dispatch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

var matmuls = []manifest.Matmul{
	{Name: "decode.wqkv", N: 960, K: 576, DType: "q8_b32t2", Impls: []string{"gemv", "flat_gemm", "gemm"}, Rows: []int{1, 3, 96}},
	{Name: "decode.head", N: 49152, K: 576, DType: "q8_b32t2", Impls: []string{"gemv"}, Rows: []int{1}},
	{Name: "decode.wo", N: 576, K: 576, DType: "q4_b64", Impls: []string{"gemv", "gemm"}, Rows: []int{1, 2}},
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	table, err := Table(matmuls, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(table) != 3*Rows {
		t.Fatalf("%d bytes", len(table))
	}
	for rows, want := range map[int]byte{1: 0, 2: 0, 3: 1, 95: 1, 96: 2, 511: 2, 512: 2} {
		if table[rows] != want {
			t.Errorf("%d rows: implementation %d, expected %d", rows, table[rows], want)
		}
	}
	if got := Describe(matmuls[0], table[:Rows]); got != "gemv, rows>=3: flat_gemm, rows>=96: gemm" {
		t.Errorf("described as %q", got)
	}
	if got := Describe(matmuls[1], table[Rows:]); got != "gemv" {
		t.Errorf("described as %q", got)
	}
}

func TestProfileReplacesDefaults(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "model.profile")
	p := &Profile{Device: "here", Shapes: []Shape{
		{N: 960, K: 576, DType: "q8_b32t2", Rules: []Rule{{1, "flat_gemm"}, {600, "gemv"}}},
		{N: 7, K: 7, DType: "f32", Rules: []Rule{{1, "of another model"}}},
	}}
	if err := p.Write(path); err != nil {
		t.Fatal(err)
	}
	read, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	table, err := Table(matmuls, read)
	if err != nil {
		t.Fatal(err)
	}
	if table[1] != 1 || table[511] != 1 || table[512] != 0 {
		t.Errorf("entries %d %d %d, expected 1 1 0", table[1], table[511], table[512])
	}
	if table[2*Rows+2] != 1 || table[2*Rows+1] != 0 {
		t.Error("a shape that the profile lacks must keep its default")
	}
}

// TestSameShape checks that a matmul with float activations is unchanged by rules for
// kernels that only another matmul of its shape has.
func TestSameShape(t *testing.T) {
	t.Parallel()
	float := manifest.Matmul{Name: "decode.float", N: 960, K: 576, DType: "q8_b32t2", Impls: []string{"gemv", "gemm"}, Rows: []int{1, 64}}
	p := &Profile{Format: Format, Shapes: []Shape{{N: 960, K: 576, DType: "q8_b32t2", Rules: []Rule{{1, "flat_gemm"}, {8, "gemm"}}}}}
	table, err := Table([]manifest.Matmul{matmuls[0], float}, p)
	if err != nil {
		t.Fatal(err)
	}
	if got := Describe(matmuls[0], table[:Rows]); got != "flat_gemm, rows>=8: gemm" {
		t.Errorf("with quantized activations: %s", got)
	}
	if got := Describe(float, table[Rows:]); got != "gemv, rows>=8: gemm" {
		t.Errorf("with float activations: %s", got)
	}
}

func TestUnknownImplementation(t *testing.T) {
	t.Parallel()
	p := &Profile{Format: Format, Shapes: []Shape{{N: 576, K: 576, DType: "q4_b64", Rules: []Rule{{1, "flat_gemm"}}}}}
	_, err := Table(matmuls, p)
	if err == nil || !strings.Contains(err.Error(), `"flat_gemm"`) || !strings.Contains(err.Error(), "gemv, gemm") {
		t.Errorf("error %v, expected the name and the choices", err)
	}
}

func TestBadProfiles(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"not JSON":      `shapes`,
		"unknown key":   `{"format":1,"shape":[]}`,
		"other format":  `{"format":2,"shapes":[]}`,
		"no size":       `{"format":1,"shapes":[{"n":1,"k":0,"dtype":"f32","rules":[]}]}`,
		"twice":         `{"format":1,"shapes":[{"n":1,"k":1,"dtype":"f32","rules":[]},{"n":1,"k":1,"dtype":"f32","rules":[]}]}`,
		"zero rows":     `{"format":1,"shapes":[{"n":1,"k":1,"dtype":"f32","rules":[{"rows":0,"impl":"a"}]}]}`,
		"descending":    `{"format":1,"shapes":[{"n":1,"k":1,"dtype":"f32","rules":[{"rows":2,"impl":"a"},{"rows":2,"impl":"b"}]}]}`,
		"nameless impl": `{"format":1,"shapes":[{"n":1,"k":1,"dtype":"f32","rules":[{"rows":2}]}]}`,
	} {
		path := filepath.Join(t.TempDir(), "p")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, expected one naming the file", name, err)
		}
	}
	if p, err := ReadBeside(filepath.Join(t.TempDir(), "none")); p != nil || err != nil {
		t.Errorf("an absent profile: %v, %v", p, err)
	}
}

func TestDefaultsInAnyOrder(t *testing.T) {
	t.Parallel()
	matmul := manifest.Matmul{Name: "x", N: 1, K: 1, DType: "f32", Impls: []string{"a", "b", "c"}, Rows: []int{9, -1, 1}}
	table, err := Table([]manifest.Matmul{matmul}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := Describe(matmul, table); got != "c, rows>=9: a" {
		t.Errorf("described as %q", got)
	}
}

func TestDamagedMatmul(t *testing.T) {
	t.Parallel()
	if _, err := Table([]manifest.Matmul{{Name: "x", Impls: []string{"a"}}}, nil); err == nil {
		t.Error("a matmul without bounds was taken")
	}
}

// FuzzRead reads any file as a profile, and lays out the table of a model with it.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"format":1,"device":"x","order":"any","shapes":[{"n":960,"k":576,"dtype":"q8_b32t2","rules":[{"rows":1,"impl":"gemv"},{"rows":9,"impl":"gemm"}]}],
		"splits":[{"context":64,"parts":1,"tried":[1,2],"seconds":[1,2]},{"context":512,"parts":8}]}`))
	f.Add([]byte(`{"format":1,"shapes":[{"n":576,"k":576,"dtype":"q4_b64","rules":[{"rows":1,"impl":"gemm"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := hostiletest.File(t, "p", data)
		_ = hostiletest.Read(t, len(data), func() error { return useProfile(t, path) })
	})
}

// useProfile reads a profile and what it says of a model's matmuls and attention.
func useProfile(t *testing.T, path string) error {
	p, err := Read(path)
	if err != nil {
		return err
	}
	for _, rows := range []int{0, 1, 4096, 1 << 30} {
		if i := p.SplitsAt(rows); i < 0 || i > 0 && i >= len(p.Splits) {
			t.Fatalf("%d rows: entry %d of %d splits", rows, i, len(p.Splits))
		}
	}
	table, err := Table(matmuls, p)
	if err != nil {
		return err
	}
	for i, s := range matmuls {
		for _, impl := range table[i*Rows:][:Rows] {
			if int(impl) >= len(s.Impls) {
				t.Fatalf("matmul %d: implementation %d", i, impl)
			}
		}
	}
	return nil
}
