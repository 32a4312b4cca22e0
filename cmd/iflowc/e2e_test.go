package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
)

// scratch holds the compiler and the models that the tests of this package
// build, each once.
var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "iflowc-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// command builds iflowc, once.
var command = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(scratch, "iflowc")
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

// An outcome is what a program left.
type outcome struct {
	stdout, stderr string
	code           int
}

// call runs a program to its end, in this process's environment and env.
func call(t testing.TB, env []string, program string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), env...)
	err := cmd.Run()
	if ee := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ee) {
		t.Fatal(err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// iflowc runs the compiler under test.
func iflowc(t testing.TB, args ...string) outcome {
	t.Helper()
	bin, err := command()
	if err != nil {
		t.Fatal(err)
	}
	return call(t, nil, bin, args...)
}

// succeed fails the test unless the program ended well, and gives its output.
func (o outcome) succeed(t testing.TB) string {
	t.Helper()
	if o.code != 0 {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	return o.stdout
}

// These skip tests where a model cannot be compiled, or CUDA not be emulated.
func needCompiler(t testing.TB)  { devicetest.NeedCompiler(t) }
func needEmulation(t testing.TB) { devicetest.NeedEmulation(t) }

const demoSpec = "../../models/demo.yaml"

// demo is the demo model, with f32 weights, activations and cache, compiled
// once.
func demo(t testing.TB) string {
	t.Helper()
	needCompiler(t)
	bin, err := compiledDemo()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

var compiledDemo = sync.OnceValues(func() (string, error) {
	iflowc, err := command()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(scratch, "demo")
	out, err := exec.Command(iflowc, "compile", demoSpec, "--quant", "f32", "-o", bin).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile: %w\n%s", err, out)
	}
	return bin, nil
})

// decode reads one JSON document, and nothing after it, into v.
func decode(t testing.TB, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v in %.200q", err, text)
	}
}

// join spells token ids for the command line.
func join(ids []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]") }

func itoa(n int) string { return strconv.Itoa(n) }
