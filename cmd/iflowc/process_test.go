package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/iflowc/iflowc/spec"
)

// TestInterrupt: Ctrl-C in the middle of a compile ends it with 130 and leaves
// neither output nor half-written files, in the cache or beside the output.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	bin, err := command()
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
		if code := cmd.ProcessState.ExitCode(); code != 130 && code != -1 {
			t.Errorf("after %v: exit %d, want %d: %s", after, code, 130, &stderr)
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

// noCC stands in for a C compiler: what it makes is what it reads.
const noCC = `#!/bin/sh
if [ "$1" = --version ]; then echo cc 1; exit; fi
while [ "$1" != -o ]; do shift; done
cat $(ls | grep -e '\.c$' -e '^objects$') >"$2"
`

// noGo stands in for go build: what it makes is what it reads, without the runtime.
const noGo = `#!/bin/sh
while [ "$1" != -o ]; do shift; done
cat main.go go.mod model.* lib* >"$2"
`

// TestConcurrentCompiles: several compiles of one model for GPUs with one new
// cache all succeed and make the same bytes; one more compiles nothing.
func TestConcurrentCompiles(t *testing.T) {
	t.Parallel()
	bin, err := command()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{"nvcc": slowNVCC, "cc": noCC, "go": noGo} {
		if err := os.WriteFile(filepath.Join(dir, "bin", name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	runs := filepath.Join(dir, "runs")
	env := []string{"IFLOWC_CACHE=" + filepath.Join(dir, "cache"), "CUDA_HOME=" + dir, "NVCC_RUNS=" + runs, "PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH")}
	compile := func(i int) outcome {
		return call(t, env, bin, "compile", demoSpec, "--quant", "f32", "--isa", "portable", "--target", "cuda",
			"-o", filepath.Join(dir, itoa(i)))
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
