//go:build unix

package cuda

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

var allImpls = []string{"gemv", "flat_gemm", "flat_gemm32", "flat_gemm64", "gemm", "cublaslt"}

// hopper returns a GPU with the attributes of an H100.
func hopper() *GPU {
	return &GPU{Driver: &Driver{}, Name: "NVIDIA H100", Compute: 90, Processors: 132, L2Bytes: 50 << 20, ClockKHz: 1_980_000, MemoryKHz: 2_619_000, BusBits: 5120}
}

// TestEstimate checks the order of implementations without a profile: the kernel that
// streams the weights for one row, tensor cores for a few rows, and 16-bit matmuls for
// many.
func TestEstimate(t *testing.T) {
	for _, dt := range []string{"f16", "bf16", "q8_b64", "q4_b64"} {
		s := &manifest.Matmul{N: 12288, K: 4096, DType: dt, Impls: allImpls}
		from := hopper().estimate(s, func(string) bool { return true })
		if from[0] != 1 || from[5] < 16 || from[5] > 512 || from[1] < 2 || from[2] < 2 {
			t.Errorf("%s: from %v rows on", dt, from)
		}
		if without := hopper().estimate(s, func(impl string) bool { return impl != implCublas }); without[5] != -1 {
			t.Errorf("%s without cuBLASLt: from %v rows on", dt, without)
		}
	}
}

// TestChoice checks that a profile decides for its shapes, and that the model's own
// kernel replaces a missing cuBLASLt, with one notice.
func TestChoice(t *testing.T) {
	missing := BLASChoice(t.TempDir() + "/libcublasLt.so.13")
	rules := []dispatch.Rule{{Rows: 1, Impl: "gemv"}, {Rows: 3, Impl: "flat_gemm"}, {Rows: 40, Impl: "cublaslt"}}
	measured := &dispatch.Profile{Shapes: []dispatch.Shape{{N: 64, K: 128, DType: "f16", Rules: rules}}}
	for _, c := range []struct {
		profile *dispatch.Profile
		blas    BLASChoice
		notice  string
	}{
		{nil, noBLAS, ""},
		{nil, missing, "cuBLASLt cannot be loaded: "},
		{measured, missing, "the profile of NVIDIA H100 was measured with cuBLASLt, which is missing here"},
	} {
		var notices []string
		d := &Device{GPU: hopper(), Profile: c.profile, BLAS: c.blas, Plan: &manifest.CUDA{Matmuls: []manifest.Matmul{{Name: "decode.w", N: 64, K: 128, DType: "f16", Impls: allImpls}}},
			Notice: func(format string, args ...any) { notices = append(notices, fmt.Sprintf(format, args...)) }}
		choice, err := d.chosen()
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(notices, "\n"); !strings.HasPrefix(text, c.notice) || (c.notice == "") != (text == "") || strings.Contains(text, "\n") {
			t.Errorf("notice %q, want one line that begins with %q", text, c.notice)
		}
		if slices.Contains(choice.table, 5) {
			t.Errorf("cuBLASLt is chosen where there is none: %v", choice.row(0))
		}
		if c.profile != nil && (choice.of(0, 2) != 0 || choice.of(0, 39) != 1 || choice.of(0, 4000) != 4) {
			t.Errorf("the profile's rules became %s", dispatch.Describe(d.Plan.Matmuls[0], choice.row(0)))
		}
	}
}

// TestNeeds checks that no estimate selects an implementation that needs a certain GPU,
// that a profile selects it there, and that gemm replaces it elsewhere, with one notice.
func TestNeeds(t *testing.T) {
	impls := append(slices.Clone(allImpls), "wgmma")
	plan := func(image manifest.CUDAImage) *manifest.CUDA {
		return &manifest.CUDA{Matmuls: []manifest.Matmul{{Name: "decode.w", N: 4096, K: 4096, DType: "f16", Impls: impls}}, Needs: map[string]int{"wgmma": 90}, Images: []manifest.CUDAImage{image}}
	}
	ampere := hopper()
	ampere.Name, ampere.Compute = "NVIDIA A100", 80
	measured := &dispatch.Profile{Shapes: []dispatch.Shape{{N: 4096, K: 4096, DType: "f16", Rules: []dispatch.Rule{{Rows: 1, Impl: "wgmma"}}}}}
	here, absent := manifest.CUDAImage{Unit: "wgmma", Compute: 90}, manifest.CUDAImage{Unit: "other"}
	for _, c := range []struct {
		gpu     *GPU
		image   manifest.CUDAImage
		profile *dispatch.Profile
		want    string
		notices int
	}{{hopper(), here, nil, "gemm", 0}, {hopper(), here, measured, "wgmma", 0}, {hopper(), absent, measured, "gemm", 1}, {ampere, here, measured, "gemm", 1}} {
		notices := 0
		d := &Device{GPU: c.gpu, Profile: c.profile, BLAS: noBLAS, Plan: plan(c.image), Notice: func(string, ...any) { notices++ }}
		choice, err := d.chosen()
		if err != nil {
			t.Fatal(err)
		}
		if got := impls[choice.of(0, 512)]; got != c.want || notices != c.notices {
			t.Errorf("%s, image %v: %s with %d notices, want %s with %d", c.gpu.Name, c.image, got, notices, c.want, c.notices)
		}
	}
}

// TestChoiceRefused checks that the error for a profile of another kind of device names
// the present GPU.
func TestChoiceRefused(t *testing.T) {
	d := &Device{GPU: hopper(), BLAS: noBLAS, Plan: &manifest.CUDA{Matmuls: []manifest.Matmul{{Name: "decode.w", N: 64, K: 128, DType: "f32", Impls: allImpls[:2]}}},
		Profile: &dispatch.Profile{Shapes: []dispatch.Shape{{N: 64, K: 128, DType: "f32", Rules: []dispatch.Rule{{Rows: 1, Impl: "avx"}}}}}}
	if _, err := d.chosen(); err == nil || !strings.Contains(err.Error(), `no implementation "avx"; matmul decode.w has gemv, flat_gemm`) {
		t.Errorf("got %v", err)
	}
}

// TestPieces checks that matrices are unpacked in whole tiles and in pieces of at most
// 32 MB.
func TestPieces(t *testing.T) {
	for _, g := range []*GPU{{}, hopper(), {L2Bytes: 1 << 30}} {
		for ld := 64; ld < 200_000; ld = ld*3 + 64 {
			n := g.piece(ld)
			if n%manifest.GemmTile != 0 || n < manifest.GemmTile || n > manifest.GemmTile && n*ld*2 > 32<<20 {
				t.Errorf("L2 of %d bytes: %d rows of %d", g.L2Bytes, n, ld)
			}
		}
	}
}

// TestReadGBs checks that the bandwidth of a GPU is the measured one, else that of its
// bus, else unknown.
func TestReadGBs(t *testing.T) {
	measured := &dispatch.Profile{Machine: &dispatch.Machine{ReadGBs: []float64{2900, 3000, 2950}}}
	for _, c := range []struct {
		gpu     *GPU
		profile *dispatch.Profile
		want    float64
	}{{hopper(), measured, 2950}, {hopper(), nil, 3352.32}, {&GPU{Driver: &Driver{}}, nil, 0}} {
		d := &Device{GPU: c.gpu, Profile: c.profile, Manifest: &manifest.Manifest{}}
		if info := d.Info(); !info.OwnMemory || info.ReadGBs != c.want {
			t.Errorf("%+v, want %v GB/s", info, c.want)
		}
	}
}
