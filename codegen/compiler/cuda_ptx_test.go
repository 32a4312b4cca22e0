package compiler

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/demotest"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device/cuda"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/templates"
	"github.com/iflowc/iflowc/tools/check/ptx"
)

// TestPTX: what nvcc makes of every kernel of a model, inline assembly
// included, run by tools/check/ptx in place of a GPU behind the same driver calls,
// gives what the interpreter of the IR gives: one row, a few rows and more than
// a tile.
func TestPTX(t *testing.T) {
	nvcc, err := toolchain.FindNVCC(t.Context())
	if err != nil {
		t.Skip(err)
	}
	cases := []struct{ spec, quant, kv string }{{demotest.Short(t), "q4_b64", "q8_b32t2"}, {"../../spec/testdata/families/llama", "f16", "f16"}}
	if irtest.All() {
		for _, q := range []string{"f32", "bf16", "q8_b32", "q8_b64", "q8_b32t2", "q6_b64", "q5_b64", "q5_b32", "q4_b32", "q3h_b64", "q3_b32", "q2_b32", "q6t_b32", "q5t_b32", "q4t_b32", "q3t_b32", "q2t_b32", "q6_b16t2", "q4_b16t2", "q2_b16"} {
			cases = append(cases, struct{ spec, quant, kv string }{demotest.Short(t), q, ""})
		}
	}
	for _, c := range cases {
		t.Run(c.quant+c.kv, func(t *testing.T) {
			t.Parallel()
			p, err := generate(c.spec, Options{Quant: c.quant, KV: c.kv, Target: "cuda"})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			driver := ptx.NewDriver()
			device := onPTX(t, p, nvcc, driver)
			ids := prompt(34, 5)
			for i := range ids {
				ids[i] %= int32(p.whole.CPU.Manifest.Vocab)
			}
			for _, run := range ptxRuns {
				if !slices.Contains(implsOf(&p.whole.CUDA.Plan), run.impl) {
					continue
				}
				want := allLogits(t, p, ids[:run.tokens])
				m := device(using(run.impl))
				got := allRows(t, m, ids[:run.tokens], engine.Options{MaxTokens: run.budget, Context: 64, Threads: 1})
				worst, largest := 0.0, 0.0
				if len(got) != len(want) {
					t.Fatalf("%d logits, expected %d (%v)", len(got), len(want), driver.Err)
				}
				for i, w := range want {
					worst, largest = math.Max(worst, math.Abs(float64(got[i])-w)), math.Max(largest, math.Abs(w))
				}
				if limit := tolerance(run.impl) * largest; !(worst <= limit) {
					t.Errorf("%s, %d tokens, %d a step: logits differ by %.2e from the interpreter, want at most %.2e (%v)", run.impl, run.tokens, run.budget, worst, limit, driver.Err)
				}
			}
			adaptersOnPTX(t, p, device, driver, ids)
			for _, k := range p.whole.CUDA.Plan.Kernels {
				if driver.Ran[k.Name] == 0 && !moves(&p.whole.CUDA.Plan, k.Name) && !elsewhere.MatchString(k.Name) {
					t.Errorf("kernel %s did not run", k.Name)
				}
			}
		})
	}
}

// ptxRuns are prompts and the implementations that compute them, where there are such.
var ptxRuns = []struct {
	tokens, budget int
	impl           string
}{{1, 1, "gemv"}, {6, 8, "gemv4"}, {6, 8, "flat_gemm"}, {20, 64, "flat_gemm32"}, {34, 64, "flat_gemm64"}, {3, 3, "gemm"}, {6, 8, "wgmma"}, {6, 8, "wgmma256"}}

// adaptersOnPTX compares steps with an adapter, of few and of many rows, with the CPU.
func adaptersOnPTX(t *testing.T, p *Program, device func(change func(*cuda.Device)) engine.Model, driver *ptx.Driver, ids []int32) {
	t.Helper()
	paths := []string{randomAdapter(t, p.whole.CPU.Manifest.Sites, 9, all)}
	adapted := func(m engine.Model, tokens int) []float32 {
		return adaptedLogits(t, m, engine.Options{MaxTokens: 64, Context: 64, Threads: 1}, [][]int32{ids[:tokens]}, paths, func(int) int { return 0 })[0]
	}
	cpu := loaded(t, p)
	for tokens, impls := range map[int][]string{1: {"gemv"}, 34: {"flat_gemm64", "gemv4"}} {
		what := fmt.Sprintf("%s, %d tokens with an adapter (%v)", impls, tokens, driver.Err)
		sameRow(t, what, adapted(device(using(impls...)), tokens), asFloat64(adapted(cpu, tokens)), adaptedTolerance(impls[0]))
	}
}

// elsewhere are the kernels that this test does not run: that of the bandwidth, and
// those in front of cuBLASLt, which needs a GPU.
var elsewhere = regexp.MustCompile("^read$|_widen$|_unpack$")

// allLogits are the interpreter's for each of some ids.
func allLogits(t *testing.T, p *Program, ids []int32) []float64 {
	t.Helper()
	step := &interp.Step{}
	for i, id := range ids {
		step.IDs, step.OutRows = append(step.IDs, int(id)), append(step.OutRows, i)
	}
	results, err := interp.Run(p.Module, p.Module.Graphs[0].Name, step, interp.NewWeights(p.Module, valuesOf(p.set)), interp.NewStates())
	if err != nil {
		t.Fatal(err)
	}
	return results[0].F
}

// allRows are the engine's. The step finds the largest of each.
func allRows(t *testing.T, m engine.Model, ids []int32, opt engine.Options) (rows []float32) {
	t.Helper()
	e, err := engine.Open(m, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.AddQuery(engine.Query{Tokens: ids, Last: -1, TopK: 20}); err != nil {
		t.Fatal(err)
	}
	for len(rows) < len(ids)*m.Manifest.Vocab {
		results, err := e.Infer(t.Context())
		if err != nil {
			t.Error(err)
			return rows
		}
		for _, r := range results {
			for i := range r.Rows {
				rows = append(rows, r.Row(0, i)...)
			}
			last := r.Row(0, r.Rows-1)
			if got, want := r.AppendTop(nil, -1, len(last)), largestOf(last, 20); !slices.Equal(got, want) {
				t.Errorf("the step found %v as the largest, want %v", got, want)
			}
		}
	}
	return rows
}

// moves says whether a kernel only moves rows, which no step does.
func moves(plan *manifest.CUDA, name string) bool {
	for _, l := range plan.Moves {
		if plan.Kernels[l.Kernel].Name == name {
			return true
		}
	}
	return false
}

// onPTX makes models whose kernels are PTX on a driver of this program, on a
// device that the test changes.
func onPTX(t *testing.T, p *Program, nvcc *toolchain.Compiler, driver *ptx.Driver) func(change func(*cuda.Device)) engine.Model {
	t.Helper()
	m := emulatedWeights(t, p)
	device := ptxDevice(t, m.Manifest, p.whole.CUDA, nvcc, driver)
	return func(change func(*cuda.Device)) engine.Model {
		d := device()
		change(d)
		m.Device = d
		return m
	}
}

// ptxDevice makes devices of a driver of this program with a model's kernels as PTX.
func ptxDevice(t *testing.T, man *manifest.Manifest, model *codegen.CUDAModel, nvcc *toolchain.Compiler, driver *ptx.Driver) func() *cuda.Device {
	t.Helper()
	files := map[string]string{}
	model.Plan.Images = nil
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, u := range model.Units {
		wait.Go(func() {
			text := ptxOf(t, nvcc.Path, u)
			mu.Lock()
			defer mu.Unlock()
			files[u.Name] = string(append(text, 0))
			model.Plan.Images = append(model.Plan.Images, manifest.CUDAImage{Unit: u.Name, File: u.Name, Compute: u.Compute})
		})
	}
	wait.Wait()
	d, err := cuda.DriverOf(driver.Call)
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := d.OpenGPU(0)
	if err != nil {
		t.Fatal(err)
	}
	return func() *cuda.Device {
		return &cuda.Device{GPU: gpu, Manifest: man, Plan: &model.Plan, Files: files}
	}
}

// ptxOf compiles a unit to PTX, optionally with the text of case.cuh.
func ptxOf(t *testing.T, nvcc string, u codegen.CUDAUnit, included ...string) []byte {
	dir := t.TempDir()
	files := templates.CUDAHeaders()
	files["unit.cu"], files["case.cuh"] = u.Source, strings.Join(included, "")
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Error(err)
			return nil
		}
	}
	_, _ = runIn(t, dir, nvcc, append([]string{"-arch=sm_90a", "-ptx", "-I.", "unit.cu", "-o", "unit.ptx"}, cudaFlags...)...)
	text, err := os.ReadFile(filepath.Join(dir, "unit.ptx"))
	if err != nil {
		t.Error(fmt.Errorf("%s: %w", u.Name, err))
	}
	return text
}
