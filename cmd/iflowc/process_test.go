package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/spec"
	"github.com/iflowc/iflowc/templates"
)

// TestInterrupt: Ctrl-C in the middle of a compile ends it with 130 and leaves
// neither output nor half-written files, in the cache or beside the output.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	bin, err := compiler()
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{100 * time.Millisecond, 600 * time.Millisecond} {
		dir := t.TempDir()
		var stderr bytes.Buffer
		cmd := exec.Command(bin, "compile", demoSpec, "--quant", "f32", "-o", filepath.Join(dir, "out"))
		cmd.Env = append(os.Environ(), "IFLOWC_CACHE="+filepath.Join(dir, "cache"))
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_ = cmd.Wait() // its exit code is what counts
		if code := cmd.ProcessState.ExitCode(); code != exitInterrupted && code != -1 {
			t.Errorf("after %v: exit %d, want %d: %s", after, code, exitInterrupted, &stderr)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("after %v: ended only %v later", after, took)
		}
		for _, pattern := range []string{"out*", "cache/tmp/*"} {
			if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) != 0 {
				t.Errorf("after %v left behind: %v", after, left)
			}
		}
	}
}

// slowNVCC stands in for nvcc: its file is there at once, whole a moment later. It
// notes its runs.
const slowNVCC = `#!/bin/sh
if [ "$1" = --version ]; then echo nvcc 13; exit; fi
for out; do :; done
printf '\120\355\125\272 fatbin' >"$out"
sleep 0.2
cat *.cu >>"$out"
echo >>"$NVCC_RUNS"
`

// TestConcurrentCompiles: several compiles of one model for GPUs with one new
// cache all succeed and make the same bytes; one more compiles nothing.
func TestConcurrentCompiles(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	bin, err := compiler()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "nvcc"), []byte(slowNVCC), 0o755); err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(dir, "runs")
	compile := func(i int) outcome {
		return call(t, []string{"IFLOWC_CACHE=" + filepath.Join(dir, "cache"), "CUDA_HOME=" + dir, "NVCC_RUNS=" + runs}, bin,
			"compile", demoSpec, "--quant", "f32", "--isa", "portable", "--target", "cuda", "-o", filepath.Join(dir, itoa(i)))
	}
	var wg sync.WaitGroup
	outs := make([]outcome, 3)
	for i := range 2 {
		wg.Go(func() { outs[i] = compile(i) })
	}
	wg.Wait()
	before, err := os.Stat(runs)
	if err != nil {
		t.Fatal(err)
	}
	outs[2] = compile(2)
	if after, err := os.Stat(runs); err != nil || after.Size() != before.Size() {
		t.Errorf("an unchanged model ran nvcc again (%v)", err)
	}
	var first []byte
	for i, o := range outs {
		o.succeed(t)
		data, err := os.ReadFile(filepath.Join(dir, itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && !bytes.Equal(data, first) {
			t.Error("two compiles at once gave different binaries")
		}
		first = data
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "cache/tmp/*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

var allCompilers = flag.Bool("all-compilers", false, "compile the generated C of every weight type with gcc and with clang")

// TestGeneratedC: the C of the demo model compiles with warnings as errors, for
// every instruction set of this architecture. -all-compilers: under gcc and
// under clang, in every weight type; else with this machine's compiler in one.
func TestGeneratedC(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	compilers, quants := []string{""}, []string{"q4_b32"}
	if *allCompilers {
		compilers = []string{"gcc", "clang"}
		quants = []string{"f32", "f16", "bf16", "q8_b32", "q8_b64", "q8_b32t2", "q6_b64", "q5_b64", "q5_b32", "q4_b32", "q4_b64", "q3h_b64", "q3_b32", "q2_b32"}
	}
	cache, err := toolchain.OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for _, name := range compilers {
		cc, err := toolchain.FindCompiler(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		b := &toolchain.Builder{Cache: cache, CC: cc}
		for _, q := range quants {
			f := &compileFlags{modelFlags: modelFlags{Spec: demoSpec, Quant: q}}
			p, err := f.generate()
			if err != nil {
				t.Fatalf("%s: %v", q, err)
			}
			p.m.set.Close()
			if _, err := libraries(ctx, b, p.cpu, p.isas); err != nil {
				t.Errorf("%s by %s: %v", q, cc.Path, err)
			}
		}
	}
}

// TestLibraryLoads: every specification of the model library is read, or says
// that it needs the model's folder.
func TestLibraryLoads(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../models/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		_, err := spec.Load(file, spec.Options{})
		if err != nil && !strings.Contains(err.Error(), "--model-dir") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestInstructionSets: every instruction set of this architecture can be asked
// for by name, in the catalogue's order.
func TestInstructionSets(t *testing.T) {
	t.Parallel()
	for _, isa := range templates.ISAs() {
		if isa.Arch != "" && isa.Arch != runtime.GOARCH {
			continue
		}
		got, err := pickISAs(isa.Name)
		if err != nil || len(got) != 1 || got[0].Name != isa.Name {
			t.Errorf("%s: %v %v", isa.Name, got, err)
		}
	}
	all, err := pickISAs("")
	if err != nil || !slices.ContainsFunc(all, func(i templates.ISA) bool { return len(i.Needs) == 0 }) {
		t.Errorf("no instruction set that every processor has: %v", err)
	}
}

// TestSkippingPasses: a model still compiles to C when any pass but quantize is
// left out: passes make programs fast, not right.
func TestSkippingPasses(t *testing.T) {
	t.Parallel()
	for _, name := range passes.Names() {
		f := &modelFlags{Spec: demoSpec, Quant: "f32"}
		m, err := f.open()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.module(m, passes.Options{Limit: -1, Skip: map[string]bool{name: true}}); err != nil {
			t.Errorf("without %s: %v", name, err)
		}
		m.set.Close()
	}
}
