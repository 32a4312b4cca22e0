package compiler_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/passes"
)

// Compile a model of the library to a binary, and run it.
func ExampleCompile() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	result, err := compiler.Compile(context.Background(), "demo", compiler.Options{
		Quant: "q8", ISA: "portable", Out: filepath.Join(dir, "demo"),
	})
	if err != nil {
		log.Fatal(err)
	}
	out, err := exec.Command(result.Binary, "generate", "-p", "Once upon a time", "-n", "8", "--temp", "0").Output()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", out)
	// Output: a small girl called Rita lived in
}

// Print what a pass does to a model's module.
func ExampleModel_Module() {
	m, err := compiler.Open(context.Background(), "demo", compiler.Options{Quant: "f32"})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	for _, after := range []string{"lower", "fuse-regions"} {
		mod, err := m.Module(passes.Options{After: after, Limit: -1})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("after %s: %d fused regions\n", after, strings.Count(mod.String(), "fuse {"))
	}
	// Output:
	// after lower: 0 fused regions
	// after fuse-regions: 5 fused regions
}

// Run a model's module with the reference interpreter.
func ExampleModel_Values() {
	m, err := compiler.Open(context.Background(), "demo", compiler.Options{Quant: "f32"})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	mod, err := m.Lower()
	if err != nil {
		log.Fatal(err)
	}
	step := &interp.Step{IDs: []int{1, 2, 3}}
	out, err := interp.Run(mod, "decode", step, interp.NewWeights(mod, m.Values()), interp.NewStates())
	if err != nil {
		log.Fatal(err)
	}
	logits := out[0]
	fmt.Println(mod.Graph("decode").Body.Yield[0].Name, logits.Shape)
	// Output: logits [3 1536]
}
