package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/codegen/demotest"
	"github.com/iflowc/iflowc/ir/irtest"
)

// TestSummary: a compile says what was made, what it takes and what to run.
func TestSummary(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	r := compiler.Result{
		Binary: filepath.Join(here, "llama"), BinaryBytes: 15e6, Weights: filepath.Join(here, "llama.weights"), WeightBytes: 2.47e9, Seconds: 9.6,
		Network: "decoder_only", ChatTemplate: true, WeightType: "bf16", BitsPerWeight: 16, Context: 8192, StateBytes: 268e6, MemoryBytes: 2.8e9,
		BoundTokS: 13.7, BoundGBS: 33.9,
		Smaller: []compiler.SmallerWeights{{Quant: "q8", WeightBytes: 1.31e9, Speedup: 1.88}, {Quant: "q4", WeightBytes: 0.83e9, Speedup: 3}},
	}
	want := `llama: 15.0 MB, compiled in 9.6 s
weights: 2.5 GB of bf16, 16.0 bits per weight, in llama.weights
memory: 2.8 GB for a sequence of 8192 tokens (KV cache 268 MB)
bandwidth bound: 14 tok/s at batch 1 (34 GB/s)
smaller: --quant q8 needs 1.3 GB and decodes up to 1.9x as fast, --quant q4 needs 830 MB and decodes up to 3.0x as fast (loss: docs/quantization.md)
next: ./llama chat, ./llama serve, or ./llama --help
`
	if got := describe(&r, "binary"); got != want {
		t.Errorf("have\n%s\nwant\n%s", got, want)
	}
	r.Binary, r.Weights, r.Network, r.StateBytes, r.BoundTokS = "/elsewhere/bert", "", "encoder_only", 0, 0
	want = `/elsewhere/bert: 15.0 MB, compiled in 9.6 s
weights: 2.5 GB of bf16, 16.0 bits per weight, embedded
memory: 2.8 GB for a sequence of 8192 tokens
smaller: --quant q8 needs 1.3 GB, --quant q4 needs 830 MB (loss: docs/quantization.md)
`
	if got := describe(&r, "lib"); got != want {
		t.Errorf("have\n%s\nwant\n%s", got, want)
	}
	if got := describe(&r, "binary"); !strings.HasSuffix(got, "next: /elsewhere/bert embed \"Hello\", /elsewhere/bert serve, or /elsewhere/bert --help\n") {
		t.Errorf("have\n%s", got)
	}
}

// TestSummaryKeys: the summary in JSON has the keys that scripts rely on, and
// sizes only of weights that are not quantized.
func TestSummaryKeys(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	quants := []string{"", "q8"}
	if irtest.All() {
		quants = append(quants, "16") // bits, a budget: seconds of measuring, which TestBudget of codegen/compiler has
	}
	for _, quant := range quants {
		sizes := 0
		if quant == "" {
			sizes = 2
		}
		out := iflowc(t, "compile", demotest.Short(t), "--quant", quant, "--isa", "portable", "--json", "-o", filepath.Join(t.TempDir(), "demo")).succeed(t)
		has(t, "summary", []byte(out), "binary", "binary_bytes", "weights", "weight_bytes", "regions_per_layer", "seconds", "memory_bytes",
			"weight_type", "bits_per_weight", "context", "state_bytes")
		var r compiler.Result
		decode(t, out, &r)
		if len(r.Smaller) != sizes || sizes > 0 && (r.Smaller[0].WeightBytes >= r.WeightBytes || r.Smaller[1].WeightBytes >= r.Smaller[0].WeightBytes || r.Smaller[0].Speedup < 1.5) {
			t.Errorf("--quant %q: %+v", quant, r)
		}
	}
}

// TestOutputs: where a result cannot be put is found before any work.
func TestOutputs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing", "x")
	for args, words := range map[string]string{
		"compile demo -o " + missing:                                                   "missing does not exist; make it first",
		"compile demo -o " + dir:                                                       "is a folder; name the file to make",
		"compile demo --calibrate " + file + " -o " + missing:                          "missing does not exist; make it first",
		"compile demo --keep-sources " + file + " -o " + filepath.Join(dir, "out"):     "--keep-sources ;is a file; name a folder",
		"compile demo --emit sources -o " + file + "/x":                                "is a file; name a folder",
		"compile demo --emit package -o " + dir:                                        "holds something that is not a package of iflowc",
		"compile demo --emit lib -o " + missing:                                        "missing does not exist; make it first",
		"profile demo -o " + missing:                                                   "missing does not exist; make it first",
		"import demo -o " + missing:                                                    "missing does not exist; make it first",
		"view demo -o " + missing:                                                      "missing does not exist; make it first",
		"ir demo --all " + file:                                                        "--all ;is a file; name a folder",
		"run demo -p x --trace " + missing:                                             "--trace ;missing does not exist; make it first",
		"compile demo --emit sources --quant q4_k_m -o " + filepath.Join(dir, "never"): "is a type of llama.cpp",
	} {
		wantError(t, iflowc(t, strings.Fields(args)...), exitUsage, strings.Split(words, " ;")...)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
