package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestEmitLibrary: the page's programs in C and Python, against the demo model
// as a library, say what its binary says.
func TestEmitLibrary(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	want := call(t, nil, demo(t), "generate", "-p", "Once upon a time", "-n", "48").succeed(t)
	dir := t.TempDir()
	lib := filepath.Join(dir, "libdemo.so")
	iflowc(t, append([]string{"compile", "--emit", "lib", "-o", lib}, demoFlags...)...).succeed(t)
	program := filepath.Join(dir, "generate")
	call(t, nil, "cc", "-Wall", "-Werror", "-o", program, "../../docs/examples/generate.c", "-I"+dir, lib).succeed(t)
	weights := lib + ".weights"
	if got := call(t, nil, program, weights, "Once upon a time").succeed(t); got != want {
		t.Errorf("from C: %q, the binary says %q", got, want)
	}
	for _, args := range [][]string{{filepath.Join(dir, "none"), "x"}, {program, "x"}, {weights, ""}} {
		if o := call(t, nil, program, args...); o.code != 1 || o.stderr == "" {
			t.Errorf("%q: exit %d, %q; expected a message", args, o.code, o.stderr)
		}
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Log("python3 is not installed: its example was not run")
		return
	}
	if got := call(t, nil, python, "../../docs/examples/generate.py", lib, "Once upon a time").succeed(t); got != want {
		t.Errorf("from Python: %q, the binary says %q", got, want)
	}
}

// goIn is the go command in an emitted package. Without the folder's path in
// what it compiles, Go's own cache has the package of an earlier test.
func goIn(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-trimpath", "GOPROXY=off", "CGO_ENABLED=0")
	return cmd
}

// exampleTurn is held by the test that builds a package: Go's cache then has the runtime
// inside for the next test, instead of each compiling it.
var exampleTurn sync.Mutex

// example runs a package's example, which is to say want.
func example(t *testing.T, dir, want string) {
	t.Helper()
	exampleTurn.Lock()
	defer exampleTurn.Unlock()
	out, err := goIn(dir, "run", "./example", "demo.weights", "Once upon a time").Output()
	if err != nil || string(out) != want {
		t.Errorf("the example says %q (%v), the binary %q", out, err, want)
	}
}

// TestEmitPackageOfRanks: the package of a model by layers on two devices says
// what the whole model's binary says.
func TestEmitPackageOfRanks(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	want := call(t, nil, demo(t), "generate", "-p", "Once upon a time", "-n", "64").succeed(t)
	dir := filepath.Join(t.TempDir(), "pkg")
	iflowc(t, append([]string{"compile", "--devices", "0;1", "--emit", "package", "-o", dir}, demoFlags...)...).succeed(t)
	example(t, dir, want)
}

// TestEmitPackage: the package's example says what the binary says, and the
// package can be made again, but not over something else.
func TestEmitPackage(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	want := call(t, nil, demo(t), "generate", "-p", "Once upon a time", "-n", "64").succeed(t)
	dir := filepath.Join(t.TempDir(), "pkg")
	make := append(append([]string{"compile"}, demoFlags...), "--emit", "package", "-o", dir)
	for range 2 {
		iflowc(t, make...).succeed(t)
	}
	example(t, dir, want)
	for _, args := range [][]string{{"vet", "."}, {"doc", "Model.Generate"}, {"doc", "Sampling.MaxTokens"}} { // the examples compile, the documentation is the package's own
		if out, err := goIn(dir, args...).CombinedOutput(); err != nil {
			t.Errorf("go %v: %v: %s", args, err, out)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "iflowc_model.go")); err != nil || strings.Contains(string(text), `"github.com/iflowc/iflowc`) {
		t.Errorf("the runtime inside is not the module's own: %v", err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if o := iflowc(t, append(make[:len(make)-1], other)...); o.code != 2 || !strings.Contains(o.stderr, "something that is not") {
		t.Errorf("over another folder: exit %d, %s", o.code, o.stderr)
	}
}
