package compiler

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
)

// outsider is a program of another module that compiles the demo model and runs it.
const outsider = `package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/iflowc/iflowc/codegen/compiler"
)

func main() {
	r, err := compiler.Compile(context.Background(), "demo", compiler.Options{Quant: "q8", ISA: "portable", Out: os.Args[1]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out, err := exec.Command(r.Binary, "generate", "-p", "Once upon a time", "-n", "8", "--temp", "0").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%s", out)
}
`

// TestOutsideModule: a program outside this module imports the compiler and
// builds a model that runs, without the network.
func TestOutsideModule(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	own, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	head, requires, _ := strings.Cut(strings.Replace(string(own), "module github.com/iflowc/iflowc", "module outsider", 1), "\nrequire")
	mod := head + "\nrequire github.com/iflowc/iflowc v0.0.0\n\nreplace github.com/iflowc/iflowc => " + root + "\n\nrequire" + requires
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": mod, "main.go": outsider, "go.sum": string(sum)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "outsider")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(program, filepath.Join(dir, "demo"))
	run.Dir, run.Env = dir, append(os.Environ(), "GOPROXY=off")
	out, err := run.Output()
	if err != nil || len(strings.Fields(string(out))) < 4 {
		t.Fatalf("%v: %q", err, out)
	}
}
