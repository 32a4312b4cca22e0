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
	"github.com/iflowc/iflowc/ir/irtest"
)

// scratch holds the compiler and the models that the tests of this package
// build, each once.
var scratch string

// TestMain runs the tests, or iflowc under that name: the test's own program is the
// compiler, which saves linking another.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "iflowc" {
		main()
	}
	dir, err := os.MkdirTemp("", "iflowc-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	// A virtual machine may report an LLC that profile takes seconds to exceed.
	os.Setenv("IFLOWC_LLC", "8388608")
	code := irtest.Run(m)
	os.RemoveAll(dir)
	os.Exit(code)
}

// command is the path of iflowc.
var command = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(scratch, "iflowc")
	return bin, os.Symlink(self, bin)
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

// demoFlags are the demo model with f32 weights, activations and cache. It is compiled for
// one instruction set where not all tests run: for three it takes four times as long.
// Tests that ask for the same share what the cache has.
var demoFlags = func() []string {
	flags := []string{demoSpec, "--quant", "f32"}
	if irtest.All() {
		return flags
	}
	return append(flags, "--isa", "portable")
}()

// demo is the demo model of demoFlags.
func demo(t testing.TB) string {
	t.Helper()
	return compiled(t, demoFlags...)
}

// tinyLlama is a model of two layers of 16 columns, without a tokenizer.
func tinyLlama(t testing.TB, more ...string) string {
	t.Helper()
	return compiled(t, append([]string{tinyModels + "llama", "--quant", "f32", "--isa", "portable"}, more...)...)
}

// built has, for the arguments of a compile, the function that gives its binary.
var built sync.Map

// compiled is the binary of a compile with these arguments. All tests share it.
func compiled(t testing.TB, args ...string) string {
	t.Helper()
	needCompiler(t)
	make, _ := built.LoadOrStore(strings.Join(args, " "), sync.OnceValues(func() (string, error) {
		iflowc, err := command()
		if err != nil {
			return "", err
		}
		dir, err := os.MkdirTemp(scratch, "")
		if err != nil {
			return "", err
		}
		bin := filepath.Join(dir, "model")
		out, err := exec.Command(iflowc, append([]string{"compile", "-o", bin}, args...)...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("compile %v: %w\n%s", args, err, out)
		}
		return bin, nil
	}))
	bin, err := make.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

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
