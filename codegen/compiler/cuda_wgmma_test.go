package compiler

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/templates"
	"github.com/iflowc/iflowc/tools/check/ptx"
)

// gemmFiles are the sources of testdata/gemm.cu for one type of weights: a matrix
// of ten panels, with rows and columns that fill no whole tile, and more chunks
// than the rings have stages.
func gemmFiles(t *testing.T, quant string) (files map[string]string) {
	t.Helper()
	cat, err := templates.LoadCUDA()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("testdata/gemm.cu")
	if err != nil {
		t.Fatal(err)
	}
	dt, _ := tensor.ParseDType(quant)
	var text strings.Builder
	constant := func(name string, value any) { fmt.Fprintf(&text, "constexpr int %s = %v;\n", name, value) }
	constant("k_columns", gemmK)
	constant("panel_count", gemmPanels)
	constant("row_count", gemmRows)
	if f := "ifl_format_" + quant; dt.IsBlock() {
		format, err := cat.Format(dt)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(format)
		constant("block", f+"::BLOCK")
		constant("codes", f+"::CODES")
		constant("stride", f+"::STRIDE")
		constant("scale", f+"::SCALE")
		fmt.Fprintf(&text, "typedef ifl_fragment_block<%s> fragment;\ntypedef ifl_unpack_block<%[1]s> unpack;\n", f)
	} else {
		constant("block", 0)
		constant("codes", 0)
		constant("stride", 1)
		constant("scale", 2)
		fmt.Fprintf(&text, "typedef ifl_fragment_float<ifl_pair_%s> fragment;\ntypedef ifl_unpack_float<ifl_element_%[1]s> unpack;\n", quant)
	}
	convert := "emu::f2h"
	if quant == "bf16" {
		convert = "emu::f2b"
	}
	fmt.Fprintf(&text, "#define to16 %s\n", convert)
	files = templates.CUDAHeaders()
	files["gemm.cu"], files["case.cuh"] = string(source), text.String()
	return files
}

const gemmK, gemmPanels, gemmRows = 64*9 + 32, 10, 150

// gemmSettings are the emulation's orders of copies and of threads.
var gemmSettings = []string{"lazy fwd", "eager fwd", "lazy rev", "lazy rand:5", "eager rand:6"}

// emulateGemm builds and runs testdata/gemm.cu under emulation with changed
// sources, once per setting of the emulation, and returns what the first failing
// run prints; "" if all agree with the plain loop.
func emulateGemm(t *testing.T, files map[string]string, dump string, settings []string) string {
	t.Helper()
	cache, err := toolchain.OpenCache(testCache(t))
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	b := &toolchain.Builder{Cache: cache, CC: devicetest.NeedCompiler(t)}
	emulation := map[string][]byte{}
	for _, list := range []map[string]string{templates.CUDAHeaders(), templates.CUDAEmulation()} {
		for name, text := range list {
			emulation[name] = []byte(text)
		}
	}
	headers := maps.Clone(emulation)
	for name, text := range files {
		headers[name] = []byte(text)
	}
	flags := []string{"-std=c++20", "-fno-strict-aliasing", "-w", "-ffp-contract=off", "-O1"}
	objects, err := b.Objects(t.Context(), []toolchain.Unit{
		{Name: "gemm.cpp", Source: []byte("#include \"cuda_emu.hpp\"\n#include \"gemm.cu\"\n"), Headers: headers, Flags: flags},
		{Name: "fibers.cpp", Source: emulation["fibers.cpp"], Headers: emulation, Flags: flags},
	})
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "gemm")
	runIn(t, "", b.CC.Path, append(objects, "-o", program, "-lstdc++", "-lm", "-lpthread")...)
	for _, setting := range settings {
		async, order, _ := strings.Cut(setting, " ")
		cmd := exec.CommandContext(t.Context(), program, dump)
		cmd.Env = append(os.Environ(), "EMU_CPASYNC="+async, "EMU_ORDER="+order)
		if out, err := cmd.CombinedOutput(); err != nil {
			return setting + ": " + string(out)
		}
	}
	return ""
}

// TestGemmTypes: gemm and wgmma agree with a plain loop over the unpacked weights,
// in whatever order threads run and whenever copies complete.
func TestGemmTypes(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	for _, quant := range irtest.Sample(t, 1, weightTypes[1:]) {
		t.Run(quant, func(t *testing.T) {
			t.Parallel()
			files := gemmFiles(t, quant)
			if out := emulateGemm(t, files, os.DevNull, irtest.Sample(t, 2, gemmSettings)); out != "" {
				t.Error(out)
			}
		})
	}
}

// TestGemmPTX: nvcc's PTX of gemm and wgmma for sm_90a, interpreted, computes what
// the emulation does.
func TestGemmPTX(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	nvcc, err := toolchain.FindNVCC(t.Context())
	if err != nil {
		t.Skip(err)
	}
	for _, quant := range irtest.Sample(t, 1, weightTypes[1:]) {
		t.Run(quant, func(t *testing.T) {
			t.Parallel()
			files, dump := gemmFiles(t, quant), filepath.Join(t.TempDir(), "dump")
			if out := emulateGemm(t, files, dump, gemmSettings); out != "" {
				t.Fatal(out)
			}
			data, err := os.ReadFile(dump)
			if err != nil {
				t.Fatal(err)
			}
			m, err := ptx.Parse(string(ptxOf(t, nvcc.Path, codegen.CUDAUnit{Name: "gemm", Source: files["gemm.cu"], Compute: 90}, files["case.cuh"])))
			if err != nil {
				t.Fatal(err)
			}
			gemmOnPTX(t, m, quant, data)
		})
	}
}

// gemmOnPTX runs the three kernels on what the emulation dumped: weights, tiled
// activations, and the result of each kernel.
func gemmOnPTX(t *testing.T, m *ptx.Module, quant string, data []byte) {
	cat, err := templates.LoadCUDA()
	if err != nil {
		t.Fatal(err)
	}
	dt, _ := tensor.ParseDType(quant)
	columns, bytes, err := cat.GemmPiece(dt)
	if err != nil {
		t.Fatal(err)
	}
	block := dt.Block()
	weights := gemmPanels * ((gemmK + block - 1) / block) * (bytes / (columns / block))
	wide := (gemmRows + 255) &^ 255 * ((gemmK + columns - 1) / columns * columns) * 2
	result := gemmRows * gemmPanels * 16 * 4
	memory := flatMemory{}
	place := func(n int) (uint64, []byte) {
		at := uint64(len(memory)+1) << 32
		memory = append(memory, data[:n:n])
		data = data[n:]
		return at, memory[len(memory)-1]
	}
	w, _ := place(weights)
	x, _ := place(wide)
	sub := columns / 64
	shared := func(stages, tile int) int {
		return stages*tile*128 + (stages+2*sub-2)/sub*8*bytes + 2*8*stages
	}
	for _, k := range []struct {
		name                   string
		tile, threads, dynamic int
	}{{"k_gemm", 128, 128, shared(3, 128)}, {"k_wgmma128", 128, 384, shared(4, 128)}, {"k_wgmma256", 256, 384, shared(4, 256)}} {
		y, out := place(result)
		want := slices.Clone(out)
		for i := range out {
			out[i] = 0xff
		}
		l := ptx.Launch{Grid: [3]uint32{uint32(gemmRows+k.tile-1) / uint32(k.tile), (gemmPanels + 7) / 8, 1}, Block: [3]uint32{uint32(k.threads), 1, 1}, Shared: k.dynamic}
		for _, p := range []uint64{w, x, y} {
			l.Args = append(l.Args, binary.LittleEndian.AppendUint64(nil, p))
		}
		if err := m.Run(k.name, l, memory); err != nil {
			t.Errorf("%s: %v", k.name, err)
			continue
		}
		number := func(b []byte, i int) float64 {
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
		worst, most := 0.0, 0.0
		for i := range result / 4 {
			worst, most = math.Max(worst, math.Abs(number(out, i)-number(want, i))), math.Max(most, math.Abs(number(want, i)))
		}
		if !(worst <= 1e-5*most) { // sums are in another order, or wider
			t.Errorf("%s: results differ by %.2e of %.2e", k.name, worst, most)
		}
	}
}

// flatMemory has its region i at (i + 1) · 2³².
type flatMemory [][]byte

func (m flatMemory) At(address uint64, size int) ([]byte, error) {
	i, at := int(address>>32)-1, address&math.MaxUint32
	if i < 0 || i >= len(m) || at+uint64(size) > uint64(len(m[i])) {
		return nil, fmt.Errorf("%d bytes at %#x are in no memory", size, address)
	}
	return m[i][at:][:size], nil
}

// A gemmFault is a change to a header that the emulation must notice.
type gemmFault struct{ name, file, old, new string }

var gemmFaults = []gemmFault{
	{"no barrier between stages", "ifl_gemm.cuh", "__syncthreads(); /* the chunk", "/* the chunk"},
	{"cp.async waited for too late", "ifl_gemm.cuh", "ifl_cp_async_wait<STAGES - 2>", "ifl_cp_async_wait<STAGES - 1>"},
	{"no tail of zeros in gemm", "ifl_gemm.cuh", "make_uint4(0, 0, 0, 0)", "make_uint4(~0u, ~0u, ~0u, ~0u)"},
	{"no tail of zeros in wgmma", "ifl_wgmma.cuh", "make_uint4(0, 0, 0, 0)", "make_uint4(~0u, ~0u, ~0u, ~0u)"},
	{"wrong swizzle", "ifl_wide.cuh", "(at / 8 % 8 ^ turn)", "(at / 8 % 8 ^ (turn & 3))"},
	{"no wait for the bulk copies", "ifl_wgmma.cuh", "      ifl_mbarrier_wait(ring.full(i), ring.parity(i));\n", ""},
	{"wrong phase of a full barrier", "ifl_wgmma.cuh", "ring.full(i), ring.parity(i))", "ring.full(i), ring.parity(i) ^ 1)"},
	{"wrong phase of an empty barrier", "ifl_wgmma.cuh", "ring.empty(i), ring.parity(i - IFL_WGMMA_STAGES))", "ring.empty(i), ring.parity(i))"},
	{"no wait for an empty stage", "ifl_wgmma.cuh", "ifl_mbarrier_wait(ring.empty(i), ring.parity(i - IFL_WGMMA_STAGES));", ";"},
	{"stage released too early", "ifl_wgmma.cuh", "        ifl_wgmma_wait<1>();\n        release(i - 1);", "        release(i - 1);\n        ifl_wgmma_wait<1>();"},
	{"too few expected bytes", "ifl_wgmma.cuh", "ring.CHUNK + (piece ? ring.PANELS * have : 0)", "ring.CHUNK"},
	{"no proxy fence", "ifl_wgmma.cuh", "      ifl_proxy_fence();\n", ""},
	{"no barrier after the barriers' start", "ifl_wgmma.cuh", "    __syncthreads();\n", ""},
	{"no wgmma.fence", "ifl_wgmma.cuh", "      ifl_wgmma_fence();\n", ""},
	{"wgmma.fence too early", "ifl_wgmma.cuh", "      const uint64_t b = ifl_wgmma_rows", "      ifl_wgmma_fence();\n      const uint64_t b = ifl_wgmma_rows"},
	{"no last wait for wgmma", "ifl_wgmma.cuh", "  ifl_wgmma_wait<0>();\n", ""},
	{"last wait for all groups but one", "ifl_wgmma.cuh", "ifl_wgmma_wait<0>()", "ifl_wgmma_wait<1>()"},
	{"registers of A used twice", "ifl_wgmma.cuh", "a[turn & 1]", "a[0]"},
	{"wrong descriptor", "ifl_wgmma.cuh", "b + 2 * n", "b + n"},
}

// TestGemmFaults: the emulation notices a missing barrier, wait or fence, and a
// wrong phase, in gemm and wgmma.
func TestGemmFaults(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	for _, f := range irtest.Sample(t, 1, gemmFaults) {
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			quant := "q4_b64"
			if strings.HasPrefix(f.name, "no tail") { // blocks of 64 have none
				quant = "f16"
			}
			files := gemmFiles(t, quant)
			if !strings.Contains(files[f.file], f.old) {
				t.Fatalf("%s has no %q", f.file, f.old)
			}
			files[f.file] = strings.ReplaceAll(files[f.file], f.old, f.new)
			if f.name == "wgmma.fence too early" {
				files[f.file] = strings.Replace(files[f.file], "      ifl_settle(a[turn & 1]);\n      ifl_wgmma_fence();\n", "", 1)
			}
			out := emulateGemm(t, files, os.DevNull, gemmSettings)
			if out == "" {
				t.Error("nothing noticed it")
			}
			t.Log(out)
		})
	}
}
