package compiler

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
)

// graphSpecs are the specifications of spec/testdata that carry a graph, and
// testdata's.
func graphSpecs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../spec/testdata/graphs/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no graphs: %v", err)
	}
	return append(files, "testdata/one_column.yaml")
}

// TestCompiledGraphs: indices that are computed, two states in a layer and
// weights of one element compute on CPUs what they do in the interpreter.
func TestCompiledGraphs(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	for _, file := range irtest.Sample(t, 1, graphSpecs(t)) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			likeInterpreter(t, file, Options{Quant: "f32"}, 1e-4, loaded)
		})
	}
}

// TestEmulatedGraphs does so for CUDA.
func TestEmulatedGraphs(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	for _, file := range irtest.Sample(t, 1, graphSpecs(t)) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			likeInterpreter(t, file, Options{Quant: "f32", Target: "cuda-emu"}, 1e-4, emulatedModel)
		})
	}
}
