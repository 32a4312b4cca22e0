package compiler

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/templates"
)

// FuzzGenerate: whatever the verifier takes, both targets have code for.
func FuzzGenerate(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		text := irtest.RandomOpsText(seed)
		if _, _, _, err := generated(text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}

// generated is a module after all passes, and its code for both targets.
func generated(text string) (mod *ir.Module, cpu *codegen.CPUModel, gpu *codegen.CUDAModel, err error) {
	cat, err := templates.Load()
	if err != nil {
		return nil, nil, nil, err
	}
	if mod, err = ir.Parse("made-up.ir", []byte(text), ops.Table); err != nil {
		return nil, nil, nil, err
	}
	env := &passes.Env{Ops: ops.Table, Kernels: cat}
	env.Types.Activations = tensor.F32 // but where the text rounds them
	if err = passes.Run(env, mod, passes.Pipeline, passes.Options{Limit: -1}); err != nil {
		return nil, nil, nil, err
	}
	if cpu, err = codegen.CPU(mod, cat, 64); err != nil {
		return nil, nil, nil, err
	}
	gpu, err = cudaModel(mod, 64, nil)
	return mod, cpu, gpu, err
}

// TestOps: modules that were compiled to wrong results once.
func TestOps(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	opsCases(t, 3, (*madeUpModel).onCPU)
}

// TestEmulatedOpsCases is TestOps under emulation: narrow experts, a layer with two
// states, parts of rows.
func TestEmulatedOpsCases(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	opsCases(t, 0, (*madeUpModel).emulated)
}

func opsCases(t *testing.T, sample int, load func(*madeUpModel, *testing.T)) {
	files, err := filepath.Glob("testdata/ops/*.ir")
	if err != nil || len(files) == 0 {
		t.Fatalf("no modules: %v", err)
	}
	always := []string{"testdata/ops/experts_narrow.ir", "testdata/ops/two_states.ir", "testdata/ops/views.ir"}
	files = slices.DeleteFunc(files, func(f string) bool { return slices.Contains(always, f) })
	for _, file := range append(irtest.Sample(t, sample, files), always...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sameAsInterpreter(t, string(text), 1, load)
		})
	}
}

// sameAsInterpreter reads ids all at once, one by one and three a step, and with
// output rows for the last two; with fixed-size states, ids of three cells. How a text
// is cut changes no bit on the CPU.
func sameAsInterpreter(t *testing.T, text string, seed uint64, load func(*madeUpModel, *testing.T)) {
	t.Helper()
	n := 11
	if strings.Contains(text, " : fixed {") {
		n = 37
	}
	m := madeUp(t, text, seed)
	load(m, t)
	whole := m.compare(t, prompt(n, 3), 64, 1e-2)
	for _, budget := range []int{1, 3, 18} { // 18: a step across the end of a cell
		for o, rows := range m.compare(t, prompt(n, 3), budget, 1e-2) {
			if m.model.Dispatch != nil { // of the CPU: kernels of GPUs differ in the order of sums
				sameBits(t, fmt.Sprintf("%d a step: output %d", budget, o), rows, whole[o])
			}
		}
	}
	m.compareLast(t, prompt(n, 3), 2, 64, 1e-2)
}

// TestRandomOps: modules of any ops give on the CPU what the interpreter does,
// read token by token, a few at a time and at once.
func TestRandomOps(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	randomOps(t, 1, (*madeUpModel).onCPU)
}

// TestEmulatedOps is TestRandomOps under emulation.
func TestEmulatedOps(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	randomOps(t, 1, (*madeUpModel).emulated)
}

func randomOps(t *testing.T, sample uint64, load func(*madeUpModel, *testing.T)) {
	first := 50 * irtest.Seed(t)
	if irtest.All() {
		sample = 50
	}
	for seed := first; seed < first+sample; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			text := irtest.RandomOpsText(seed)
			t.Logf("IFLOWC_TEST_SEED=%d:\n%s", irtest.Seed(t), text)
			sameAsInterpreter(t, text, seed, load)
		})
	}
}

// TestPTXOps: nvcc takes the kernels of such modules. What they compute is
// TestEmulatedOps' part.
func TestPTXOps(t *testing.T) {
	t.Parallel()
	nvcc, err := toolchain.FindNVCC(t.Context())
	if err != nil {
		t.Skip(err)
	}
	first, sample := 50*irtest.Seed(t), uint64(1)
	if irtest.All() {
		sample = 20
	}
	for seed := first; seed < first+sample; seed++ {
		text := irtest.RandomOpsText(seed)
		_, _, gpu, err := generated(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		for _, u := range gpu.Units {
			if len(ptxOf(t, nvcc.Path, u)) == 0 {
				t.Fatalf("seed %d: no PTX of\n%s", seed, text)
			}
		}
	}
}
