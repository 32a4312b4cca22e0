package compiler

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/binary"
	"github.com/iflowc/iflowc/runtime/device/cuda"
	"github.com/iflowc/iflowc/runtime/engine"
)

// TestEmulatedFamilies: the CUDA target computes what the interpreter does,
// under emulation, for the tiny models of spec/testdata and their variants.
func TestEmulatedFamilies(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	models := familyModels(t)
	for _, name := range irtest.Sample(t, 1, slices.Sorted(maps.Keys(models))) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			likeInterpreter(t, models[name], Options{Quant: "f32", Target: "cuda-emu"}, 1e-4, emulatedModel)
		})
	}
}

// emulatedModel compiles a program for the emulation and gives it with its
// weights.
func emulatedModel(t *testing.T, p *Program) engine.Model {
	t.Helper()
	return emulatedWith(t, p, func(*cuda.Device) {})
}

// emulatedWith is emulatedModel on a device that the test changes.
func emulatedWith(t *testing.T, p *Program, change func(*cuda.Device)) engine.Model {
	t.Helper()
	cache, err := toolchain.OpenCache(testCache(t))
	if err != nil {
		t.Fatal(err)
	}
	m := emulatedWeights(t, p)
	m.Device = emulatedDevice(t, cache, m.Manifest, p.whole.CUDA, change)
	return m
}

// emulatedWeights is a model that lacks only what computes it.
func emulatedWeights(t *testing.T, p *Program) engine.Model {
	t.Helper()
	cache, err := toolchain.OpenCache(testCache(t))
	if err != nil {
		t.Fatal(err)
	}
	path, err := packWeights(t.Context(), cache, p.source(), p.whole.CPU.Pack, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Model.identify(&p.whole.CPU.Manifest, nil)
	return engine.Model{Manifest: &p.whole.CPU.Manifest, Weights: opened(t, &p.whole.CPU.Manifest, path)}
}

// opened is what a file of packed weights holds, after the check that a binary
// makes: that it is the file that the manifest describes.
func opened(t *testing.T, man *manifest.Manifest, path string) []byte {
	t.Helper()
	file, data, err := (&binary.Binary{Manifest: man}).Weights(path)
	if file != nil {
		t.Cleanup(func() { file.Close() })
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func emulatedDevice(t *testing.T, cache *toolchain.Cache, man *manifest.Manifest, m *codegen.CUDAModel, change func(*cuda.Device)) *cuda.Device {
	t.Helper()
	cc := devicetest.NeedCompiler(t)
	images, path, err := emulated(t.Context(), &toolchain.Builder{Cache: cache, CC: cc}, m)
	if err != nil {
		t.Fatal(err)
	}
	driver, err := cuda.OpenDriver(path)
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := driver.OpenGPU(0)
	if err != nil {
		t.Fatal(err)
	}
	m.Plan.Images = []manifest.CUDAImage{{File: filepath.Base(images[""])}}
	data, err := os.ReadFile(images[""])
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{filepath.Base(images[""]): string(data)}
	d := &cuda.Device{GPU: gpu, Manifest: man, Plan: &m.Plan, Files: files, Graphs: true}
	change(d)
	return d
}
