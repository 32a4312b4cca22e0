package templates

import (
	"io/fs"
	"path"
)

// An ISA is an instruction set that kernels and the step are compiled for.
type ISA struct {
	Name string
	// Arch is the GOARCH it belongs to; empty: any.
	Arch string
	// Flags are the C compiler's, the same for gcc (12 or newer) and clang (14
	// or newer).
	Flags []string
	// Needs are the features the processor must have, as fields of
	// golang.org/x/sys/cpu.X86 or ARM64 without "Has".
	Needs []string
	// Act names activations: the set is for models with such ones, and gives
	// others nothing that the next set does not.
	Act string

	parts   int   // registers that a vector of 16 floats takes
	vectors int   // attention: vectors of 16 columns that one function computes at once
	widths  []int // attention: rows of a tile, the same
	rows    []int // matmul: the same
	stream  int   // matmul: rows of which two chains of plain weights have registers
	ahead   int   // matmul: prefetch distance of plain weights, in bytes; 0: no prefetch

	// byLane: a multiply-add takes one factor from a lane of a vector, and dot
	// products of bytes are of signed ones.
	byLane bool
	// pairs: bytes are multiplied and added in pairs, to 16 bits.
	pairs bool
}

// common are the flags of every variant. A multiply-add is fused only where
// the source says so; otherwise a result would depend on how the compiler
// split a loop. Signed zeros, infinities and NaN keep their meaning.
var common = []string{"-std=gnu11", "-O2", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"}

var upToSixteen = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

var (
	avx512Flags = append([]string{"-march=x86-64-v4", "-mavx512vnni", "-mavx512vbmi", "-mavx512vbmi2",
		"-mgfni", "-mtune=znver3", "-mprefer-vector-width=512"}, common...)
	avx512Needs = []string{"AVX512F", "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512VL", "AVX512VNNI",
		"AVX512VBMI", "AVX512VBMI2", "AVX512GFNI"}
)

// isas lists the variants, the best first. -mtune=znver3 gives good code on
// newer cores too and is known to gcc 12.
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
		stream: 3, ahead: 2048, // prefetching 2 KB ahead gave a Zen 3 a fifth more bandwidth
	},
	{
		Name: "neon", Arch: "arm64",
		Flags: append([]string{"-march=armv8.2-a+dotprod"}, common...),
		Needs: []string{"ASIMD", "ASIMDDP"},
		parts: 4, vectors: 1, widths: []int{1, 2, 3, 4}, rows: []int{1, 2, 4, 8, 16}, byLane: true, stream: 1,
	},
	// The compiler may be told to use more of the processor; kernels and headers must agree on what there is.
	{Name: "portable", Flags: append([]string{"-DIFL_PORTABLE"}, common...), parts: 4, vectors: 1, widths: []int{1, 2}, rows: []int{1, 4}, stream: 1},
}

// ISAs lists the instruction sets, the best first; "portable" runs anywhere.
func ISAs() []ISA { return ISAsFor("") }

// ISAsFor is ISAs with those that are for models with activations of type act.
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

// Headers are the C headers that kernels and the step include, by file name.
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
