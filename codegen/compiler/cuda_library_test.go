package compiler

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/iflowc/iflowc/ir/irtest"
)

// TestCUDALibrary checks that the models of the library, at their real sizes, have
// kernels that fit into the shared memory of every GPU.
func TestCUDALibrary(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../models/testdata/library/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(file string) bool { // those whose IR is not recorded
		ar, err := txtar.ParseFile(file)
		return err != nil || ar.Files[len(ar.Files)-1].Name != "out.ir"
	})
	if len(files) < 50 {
		t.Fatalf("only %d models", len(files))
	}
	for _, file := range irtest.Sample(t, 16, files) {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gated{model: name, quant: "q4_b64"}
			if m := g.cuda(t); len(m.Plan.Kernels) == 0 {
				t.Error("no kernels")
			}
		})
	}
}
