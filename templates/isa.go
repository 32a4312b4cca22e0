package templates

import (
	"io/fs"
	"path"
)

// An ISA is an instruction set for which kernels and the step are compiled.
type ISA struct {
	Name string
	// Arch is its GOARCH; empty: any.
	Arch string
	// Flags are C compiler flags that both gcc (12 or newer) and clang (14 or newer)
	// accept.
	Flags []string
	// Needs lists the required CPU features, as fields of golang.org/x/sys/cpu.X86 or
	// ARM64 without "Has".
	Needs []string
	// Act is the packing of activations that the set speeds up; other models use the
	// next set of ISAs.
	Act string

	parts   int   // registers per vector of 16 floats
	vectors int   // attention: vectors of 16 columns per function
	widths  []int // attention: rows of a tile per function
	rows    []int // matmul: rows of a tile per function
	stream  int   // matmul, plain weights: number of rows with two accumulator chains that fit into registers
	ahead   int   // matmul, plain weights: prefetch distance in bytes; 0: no prefetch

	// byLane: multiply-adds and dot products read one factor from a lane of a vector
	// (ARM), and byte dot products are signed × signed.
	byLane bool
	// pairs: byte products are added in pairs to 16 bits (AVX2 vpmaddubsw).
	pairs bool
}

// common are the flags of every variant. Only explicit multiply-adds are fused,
// because otherwise a result would depend on how the compiler splits a loop.
// Signed zeros, infinities and NaN follow IEEE 754.
var common = []string{"-std=gnu11", "-O2", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"}

var upToSixteen = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

var (
	avx512Flags = append([]string{"-march=x86-64-v4", "-mavx512vnni", "-mavx512vbmi", "-mavx512vbmi2",
		"-mgfni", "-mtune=znver3", "-mprefer-vector-width=512"}, common...)
	avx512Needs = []string{"AVX512F", "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512VL", "AVX512VNNI",
		"AVX512VBMI", "AVX512VBMI2", "AVX512GFNI"}
)

// isas lists the variants, the fastest first. -mtune=znver3 also suits newer cores,
// and gcc 12 supports it.
var isas = []ISA{
	{
		Name: "avx512bf16", Arch: "amd64", Act: "bf16",
		Flags: append([]string{"-mavx512bf16"}, avx512Flags...),
		Needs: append([]string{"AVX512BF16"}, avx512Needs...),
		parts: 1, vectors: 4, widths: upToSixteen, rows: upToSixteen, stream: 12, ahead: 4096,
	},
	{
		Name: "avx512", Arch: "amd64",
		Flags: avx512Flags,
		Needs: avx512Needs,
		parts: 1, vectors: 4, widths: upToSixteen, rows: upToSixteen, stream: 12, ahead: 4096,
	},
	{
		Name: "avx2", Arch: "amd64",
		Flags: append([]string{"-march=x86-64-v3", "-mtune=znver3"}, common...),
		Needs: []string{"AVX", "AVX2", "FMA", "F16C", "BMI1", "BMI2"},
		parts: 2, vectors: 1, widths: []int{1, 2, 3, 4, 5, 6}, rows: []int{1, 2, 3, 4, 5, 6, 7, 8}, pairs: true,
		stream: 3, ahead: 2048, // a prefetch distance of 2 KB raised the bandwidth on Zen 3 by 20 %
	},
	{
		Name: "neon", Arch: "arm64",
		Flags: append([]string{"-march=armv8.2-a+dotprod"}, common...),
		Needs: []string{"ASIMD", "ASIMDDP"},
		parts: 4, vectors: 1, widths: []int{1, 2, 3, 4}, rows: []int{1, 2, 4, 8, 16}, byLane: true, stream: 1,
	},
	// Kernels and headers must be compiled for the same features, even if the C compiler's flags enable more.
	{Name: "portable", Flags: append([]string{"-DIFL_PORTABLE"}, common...), parts: 4, vectors: 1, widths: []int{1, 2}, rows: []int{1, 4}, stream: 1},
}

// ISAs returns the instruction sets, the fastest first; "portable" runs on any CPU.
func ISAs() []ISA { return ISAsFor("") }

// ISAsFor returns the instruction sets for a model with activations of type act.
func ISAsFor(act string) []ISA {
	var out []ISA
	for _, s := range isas {
		if s.Act == "" || s.Act == act {
			out = append(out, s)
		}
	}
	return out
}

func findISA(name string) (ISA, bool) {
	for _, s := range isas {
		if s.Name == name {
			return s, true
		}
	}
	return ISA{}, false
}

// Headers returns the C headers that kernels and the step include, by file name.
func Headers() map[string]string {
	names, err := fs.Glob(files, "include/*.h")
	if err != nil {
		panic("bug: " + err.Error())
	}
	out := map[string]string{}
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			panic("bug: " + err.Error())
		}
		out[path.Base(name)] = string(data)
	}
	return out
}
