package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/templates"
)

// cudaModel spells a module for the CUDA target.
func cudaModel(mod *ir.Module, context int, scores *codegen.ScoreRange) (*codegen.CUDAModel, error) {
	cat, err := templates.LoadCUDA()
	if err != nil {
		return nil, err
	}
	return codegen.CUDA(mod, cat, context, scores)
}

// scoreRange is what the softmax of decoding steps may count on.
func (f *compileFlags) scoreRange(m *model) *codegen.ScoreRange {
	if f.UnifiedSoftmax == "off" {
		return nil
	}
	r := &codegen.ScoreRange{Always: f.UnifiedSoftmax == "on"}
	var known bool
	if r.Lo, r.Hi, known = m.calibration.ScoreRange(); !known && !r.Always {
		return nil
	}
	return r
}

// forGPUs spells the program, or those of its ranks that a GPU computes, for the
// CUDA target.
func (p *program) forGPUs() (err error) {
	if p.ranks == nil {
		p.cuda, err = cudaModel(p.mod, p.m.context, p.flags.scoreRange(p.m))
		return err
	}
	gpus := 0
	for i, r := range p.ranks {
		if r.Device == "cpu" {
			continue
		}
		gpus++
		if r.cuda, err = cudaModel(r.Module, p.m.context, p.flags.scoreRange(p.m)); err != nil {
			return fmt.Errorf("rank %d: %w", i, err)
		}
	}
	if gpus == 0 {
		return usageError{fmt.Errorf("--target %s with --devices %s: no GPU is among the devices; --target cpu makes the same", p.flags.Target, p.m.Spec.Devices)}
	}
	return nil
}

// leadingOnProcessor turns the key cpu_layer_count or decoder_cpu_layer_count
// into a device string, where there is none: so many layers on the processor,
// the others on a GPU.
func (f *compileFlags) leadingOnProcessor(m *model) error {
	key, n := "cpu_layer_count", m.Spec.Engine.Layers
	if m.Spec.Engine.DecoderCPU != 0 {
		key, n = "decoder_cpu_layer_count", m.Spec.Engine.DecoderCPU
	}
	layers := m.Hyper.Layers
	switch {
	case !f.forGPU() || n == 0 || m.Spec.Devices != "":
		return nil
	case n < 0 || n >= layers:
		return usageError{fmt.Errorf("engine.%s: %d of %d layers on the processor leave none to the GPU; lower it, or compile with --target cpu", key, n, layers)}
	}
	m.Spec.Devices = fmt.Sprintf("cpu*%d;0*%d", n, layers-n)
	return nil
}

// cudaFiles compiles the code for GPUs and gives the files of it that go into
// the binary.
func (p *program) cudaFiles(ctx context.Context, b *toolchain.Builder) (map[string][]byte, error) {
	files := map[string][]byte{}
	return files, p.gpuFiles(ctx, b, p.cuda, &p.cpu.Manifest, func(name string, data []byte) string {
		files[name] = data
		return name
	})
}

// gpuFiles compiles code for GPUs, puts each of its files where put says and
// notes them in the manifest. Without code there are none.
func (p *program) gpuFiles(ctx context.Context, b *toolchain.Builder, m *codegen.CUDAModel, man *manifest.Manifest, put func(name string, data []byte) string) error {
	if m == nil {
		return nil
	}
	images, err := p.gpuImages(ctx, b, m, man, put)
	if err != nil {
		return err
	}
	for _, u := range append([]codegen.CUDAUnit{{}}, m.Units...) {
		path, ok := images[u.Name]
		if !ok {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := put("cuda-"+u.Name+filepath.Ext(path), data)
		m.Plan.Images = append(m.Plan.Images, manifest.CUDAImage{Unit: u.Name, File: name})
		man.CUDAImages = append(man.CUDAImages, name)
	}
	plan, err := json.Marshal(&m.Plan)
	man.CUDAPlan = put("cuda.json", plan)
	return err
}

// gpuImages gives the file of each unit's image; that of "" is of all units. Under
// emulation there is a driver too.
func (p *program) gpuImages(ctx context.Context, b *toolchain.Builder, m *codegen.CUDAModel, man *manifest.Manifest, put func(name string, data []byte) string) (map[string]string, error) {
	if p.flags.Target == "cuda-emu" {
		images, driver, err := emulated(ctx, b, m)
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(driver)
		man.CUDADriver = put("emulated-driver.so", data)
		return images, err
	}
	archs, err := gpuArchs(p.flags.Arch)
	if err != nil {
		return nil, err
	}
	return fatbins(ctx, b, m, archs)
}

// cudaSources are the generated sources of the CUDA target, for people.
func (p *program) cudaSources() map[string]string {
	out := map[string]string{}
	add := func(dir string, m *codegen.CUDAModel) {
		if m == nil {
			return
		}
		for name, text := range templates.CUDAHeaders() {
			out[filepath.Join(dir, name)] = text
		}
		for _, u := range m.Units {
			out[filepath.Join(dir, u.Name+".cu")] = u.Source
		}
	}
	add("cuda", p.cuda)
	for i, r := range p.ranks {
		add(fmt.Sprintf("cuda-rank%d", i), r.cuda)
	}
	return out
}

// emulated compiles every unit, as one C++ file, and the stand-in driver with its
// cuBLASLt.
func emulated(ctx context.Context, b *toolchain.Builder, m *codegen.CUDAModel) (images map[string]string, driver string, err error) {
	headers := map[string][]byte{}
	for name, text := range templates.CUDAHeaders() {
		headers[name] = []byte(text)
	}
	emulation := templates.CUDAEmulation()
	headers["cuda_emu.hpp"] = []byte(emulation["cuda_emu.hpp"])
	var unity strings.Builder
	unity.WriteString("#include \"cuda_emu.hpp\"\n")
	for _, u := range m.Units {
		fmt.Fprintf(&unity, "#include %q\n", u.Name+".cu")
		headers[u.Name+".cu"] = []byte(u.Source)
	}
	flags := []string{"-std=c++20", "-O1", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off", "-w"}
	if runtime.GOARCH == "amd64" {
		flags = append(flags, "-mavx2", "-mfma", "-mf16c")
	}
	standIn := []string{"-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden"}
	objects, err := b.Objects(ctx, []toolchain.Unit{
		{Name: "kernels.cpp", Source: []byte(unity.String()), Headers: headers, Flags: flags},
		{Name: "driver.cpp", Source: []byte(emulation["driver.cpp"]), Flags: standIn},
		{Name: "cublaslt.cpp", Source: []byte(emulation["cublaslt.cpp"]), Flags: standIn},
	})
	if err != nil {
		return nil, "", err
	}
	libs := []string{"-lstdc++", "-lm", "-lpthread", "-ldl"}
	kernels, err := b.Shared(ctx, objects[:1], libs)
	if err != nil {
		return nil, "", err
	}
	driver, err = b.Shared(ctx, objects[1:], libs)
	return map[string]string{"": kernels}, driver, err
}
