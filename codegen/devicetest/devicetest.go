// Package devicetest is a model with computable outputs, as a compiled library,
// for tests of packages above the step ABI.
package devicetest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// Sizes of the fake model, equal to those in fake.c.
const (
	Vocab   = 61
	Cols    = 64  // logits are stored padded, with huge values as padding
	Hidden  = 16  // columns of the second output
	Context = 512 // maximum tokens of a sequence
	EOS     = 2   // never sampled greedily, except …
	StopID  = 7   // … after this id, when it always is
	NaNID   = 60  // never sampled greedily; a row after this id contains a NaN
)

//go:embed testdata/fake.c
var source []byte

// built keeps the compiled library for the other tests of a package.
var built struct {
	sync.Mutex
	data []byte
}

// Build compiles the fake model, once per process, and returns the path of a
// copy of the library. It skips the test without a C compiler.
func Build(t testing.TB) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.data == nil {
		built.data = compile(t)
	}
	path := filepath.Join(t.TempDir(), "fake.so")
	if err := os.WriteFile(path, built.data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// NeedCompiler returns the C compiler, and skips the test without one.
func NeedCompiler(t testing.TB) *toolchain.Compiler {
	t.Helper()
	cc, err := toolchain.FindCompiler(t.Context(), "")
	if err != nil {
		t.Skip("needs a C compiler: ", err)
	}
	return cc
}

// NeedEmulation skips the test if CUDA cannot be emulated, which also needs a
// C++ compiler.
func NeedEmulation(t testing.TB) {
	t.Helper()
	NeedCompiler(t)
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("needs a C++ compiler: g++ is not on the path")
	}
}

func compile(t testing.TB) []byte {
	t.Helper()
	cc := NeedCompiler(t)
	cache, err := toolchain.OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &toolchain.Builder{Cache: cache, CC: cc}
	objects, err := b.Objects(t.Context(), []toolchain.Unit{{
		Name: "fake.c", Source: source,
		Headers: map[string][]byte{"ifl_step.h": Header(t)},
		Flags:   []string{"-O1", "-fPIC", "-Wall", "-Wextra", "-Werror"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	lib, err := b.Shared(t.Context(), objects, []string{"-lm"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(lib)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Header returns the step ABI's C header of this module.
func Header(t testing.TB) []byte {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = up
	}
	text, err := os.ReadFile(filepath.Join(dir, "templates", "include", "ifl_step.h"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Manifest returns the manifest of the fake model.
func Manifest() *manifest.Manifest {
	return &manifest.Manifest{
		Format: manifest.Format, Compiler: "test", Name: "fake", Network: "decoder_only",
		Vocab: Vocab, Context: Context, Params: 1000, BOS: 1, EOS: []int32{EOS}, Pad: -1,
		Graphs: []manifest.Graph{{Name: "decode", Outputs: []manifest.Output{
			{Name: "logits", Rows: "out_rows", Cols: Cols, Used: Vocab},
			{Name: "hidden", Rows: "tokens", Cols: Hidden, Used: 4},
		}}},
		Weights: []manifest.Weight{{Name: "w", DType: tensor.F32, Rows: 16, Cols: 16, Layout: "panel16", Bytes: 1024}},
		States:  []manifest.State{{Name: "kv", Count: 1, PageRows: 64, PageBytes: 512, Type: "f16"}},
		Matmuls: []manifest.Matmul{{Name: "decode.w", N: 16, K: 16, DType: "f32", Impls: []string{"gemv", "gemm"}, Rows: []int{1, 8}}},
		Regions: []manifest.Region{{Graph: "decode", Name: "w", Doc: "matmul", Rows: "tokens", Calls: 1, Products: []manifest.Product{{Weight: "w", Rows: 1}}}},
		Libs:    []manifest.Lib{{ISA: "portable", File: "lib-portable.so"}},
	}
}

// Encoder returns the manifest of the fake encoder: hidden states, logits and
// three classes.
func Encoder() *manifest.Manifest {
	m := Manifest()
	m.Network = "encoder_only"
	m.Graphs = append(m.Graphs, manifest.Graph{Name: "encode", Outputs: []manifest.Output{
		{Name: "hidden", Rows: "tokens", Cols: Hidden, Used: 4},
		{Name: "logits", Rows: "out_rows", Cols: Cols, Used: Vocab},
		{Name: "classes", Rows: "out_rows", Cols: Hidden, Used: 3},
	}})
	m.Graphs[0].Name, m.Graphs[0].Outputs = "unused", nil // the library's first graph
	return m
}

// EncoderDecoder returns the manifest of the fake encoder-decoder. Its most
// probable token may be EOS.
func EncoderDecoder() *manifest.Manifest {
	m := Encoder()
	m.Network = "encoder_decoder"
	m.Graphs[1].Outputs = m.Graphs[1].Outputs[:1]
	m.Graphs = append(m.Graphs, manifest.Graph{Name: "decode", Outputs: []manifest.Output{
		{Name: "logits", Rows: "out_rows", Cols: Cols, Used: Vocab},
	}})
	return m
}

// Encode returns the fourth hidden value of every token of a source, with token
// types, or with none if they are nil.
func Encode(source, types []int32, salt byte) float32 { return unit(encode(source, types, salt)) }

// Masked returns the row of an encoder's logits for a token of a text.
func Masked(text, types []int32, at int, salt byte) []float32 {
	return spread(encode(text, types, salt)+uint64(at), Vocab, 8)
}

// Classes returns the row of an encoder's classes for a token of a text.
func Classes(text []int32, at int, salt byte) []float32 {
	return spread((encode(text, nil, salt)+uint64(at))*7, 3, 1)
}

// Translated returns the logits of the encoder-decoder after a prefix.
func Translated(source, prefix []int32, salt byte) []float32 {
	row := spread(encode(prefix, nil, salt)+mix(encode(source, nil, salt)), Vocab, 8)
	if prefix[len(prefix)-1] == StopID {
		row[EOS] = 1e6
	}
	row[NaNID] = -1e6
	return row
}

func encode(text, types []int32, salt byte) (sum uint64) {
	for i, id := range text {
		v := uint64(id)*1000003 + uint64(i) + uint64(salt)<<40
		if types != nil {
			v += uint64(types[i]) << 20
		}
		sum = sum*31 + mix(v)
	}
	return sum
}

func unit(v uint64) float32 { return float32(mix(v)>>40) / 16777216 }

// spread returns n numbers between 0 and scale for a hash.
func spread(sum uint64, n int, scale float32) []float32 {
	row := make([]float32, n)
	for v := range row {
		row[v] = unit(sum+uint64(v)) * scale
	}
	return row
}

// Logits returns the Vocab logits of the model after a prefix, with weights
// whose first byte is salt.
func Logits(prefix []int32, salt byte) []float32 {
	row := spread(encode(prefix, nil, salt), Vocab, 8)
	row[EOS], row[NaNID] = -1e6, -1e6
	if prefix[len(prefix)-1] == StopID {
		row[EOS] = 1e6
	}
	return row
}

// Greedy returns n tokens after a prompt, each with the largest logit.
func Greedy(prompt []int32, n int, salt byte) []int32 { return GreedyWith(0, prompt, n, salt) }

// GreedyWith is Greedy with the load-th adapter that an Adapters loaded; 0: with none.
func GreedyWith(load int, prompt []int32, n int, salt byte) []int32 {
	all := append([]int32(nil), prompt...)
	for range n {
		row := Logits(Shifted(all, load), salt)
		best := 0
		for v := range row {
			if row[v] > row[best] {
				best = v
			}
		}
		all = append(all, int32(best))
	}
	return all[len(prompt):]
}

func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
