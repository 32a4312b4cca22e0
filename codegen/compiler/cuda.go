package compiler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/templates"
)

// cudaModel emits a module for the CUDA target.
func cudaModel(mod *ir.Module, context int, scores *codegen.ScoreRange) (*codegen.CUDAModel, error) {
	cat, err := templates.LoadCUDA()
	if err != nil {
		return nil, err
	}
	return codegen.CUDA(mod, cat, context, scores)
}

// scoreRange is the range of attention scores that the softmax of decode steps
// may assume.
func (m *Model) scoreRange() *codegen.ScoreRange {
	if m.opt.UnifiedSoftmax == "off" {
		return nil
	}
	r := &codegen.ScoreRange{Always: m.opt.UnifiedSoftmax == "on"}
	var known bool
	if r.Lo, r.Hi, known = m.calibration.ScoreRange(); !known && !r.Always {
		return nil
	}
	return r
}

// forGPU reports whether the target has GPU code.
func (o *Options) forGPU() bool { return o.Target == "cuda" || o.Target == "cuda-emu" }

// generateCUDA generates CUDA C for the program, or for its ranks on GPUs.
func (p *Program) generateCUDA(context.Context) (err error) {
	if !p.opt.forGPU() {
		return nil
	}
	if p.ranks == nil {
		p.whole.CUDA, err = cudaModel(p.Module, p.Context, p.scoreRange())
		return err
	}
	gpus := 0
	for i, r := range p.ranks {
		if r.Device == "cpu" {
			continue
		}
		gpus++
		if r.CUDA, err = cudaModel(r.Module, p.Context, p.scoreRange()); err != nil {
			return fmt.Errorf("rank %d: %w", i, err)
		}
	}
	if gpus == 0 {
		return InputError{fmt.Errorf("--target %s with --devices %s: no GPU is among the devices; --target cpu makes the same", p.opt.Target, p.Spec.Devices)}
	}
	return nil
}

// leadingOnCPU converts the key cpu_layer_count or decoder_cpu_layer_count to a
// device string, unless there is one: the first layers on the CPU, the others
// on a GPU.
func (m *Model) leadingOnCPU() error {
	key, n := "cpu_layer_count", m.Spec.Engine.Layers
	if m.Spec.Engine.DecoderCPU != 0 {
		key, n = "decoder_cpu_layer_count", m.Spec.Engine.DecoderCPU
	}
	layers := m.Hyper.Layers
	switch {
	case !m.opt.forGPU() || n == 0 || m.Spec.Devices != "":
		return nil
	case n < 0 || n >= layers:
		return InputError{fmt.Errorf("engine.%s: %d of %d layers on the CPU leave none to the GPU; lower it, or compile with --target cpu", key, n, layers)}
	}
	m.Spec.Devices = fmt.Sprintf("cpu*%d;0*%d", n, layers-n)
	return nil
}

// gpuFiles compiles a part's GPU code, adds the files and lists them in the
// manifest.
func (p *Program) gpuFiles(ctx context.Context, r *Rank, add func(stem, ext string, data []byte) string) error {
	m, man := r.CUDA, &r.CPU.Manifest
	images, err := p.gpuImages(ctx, m, man, add)
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
		name := add("cuda-"+u.Name, filepath.Ext(path), data)
		m.Plan.Images = append(m.Plan.Images, manifest.CUDAImage{Unit: u.Name, File: name, Compute: u.Compute})
		man.CUDAImages = append(man.CUDAImages, name)
	}
	plan, err := json.Marshal(&m.Plan)
	man.CUDAPlan = add("cuda", ".json", plan)
	return err
}

// gpuImages returns the file of each unit's image; the one under "" is for all
// units. For emulation it adds a driver.
func (p *Program) gpuImages(ctx context.Context, m *codegen.CUDAModel, man *manifest.Manifest, add func(stem, ext string, data []byte) string) (map[string]string, error) {
	if p.opt.Target == "cuda-emu" {
		images, driver, err := emulated(ctx, p.cc, m)
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(driver)
		man.CUDADriver = add("emulated-driver", ".so", data)
		return images, err
	}
	archs, err := gpuArchs(p.opt.Arch)
	if err != nil {
		return nil, err
	}
	return fatbins(ctx, p.cc, m, archs)
}

// cudaSources returns the generated sources of the CUDA target.
func (p *Program) cudaSources() map[string]string {
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
		out[filepath.Join(dir, "build.sh")] = buildScript()
	}
	add("cuda", p.whole.CUDA)
	for i, r := range p.ranks {
		add(fmt.Sprintf("cuda-rank%d", i), r.CUDA)
	}
	return out
}

// emulated compiles all units as one C++ file, with the fibers that run their
// threads and the stand-ins for the driver and cuBLASLt.
func emulated(ctx context.Context, b *toolchain.Builder, m *codegen.CUDAModel) (images map[string]string, driver string, err error) {
	emulation := templates.CUDAEmulation()
	headers := map[string][]byte{"cuda_emu.hpp": []byte(emulation["cuda_emu.hpp"]), "async.hpp": []byte(emulation["async.hpp"])}
	for name, text := range templates.CUDAHeaders() {
		headers[name] = []byte(text)
	}
	own := maps.Clone(headers)
	var unity strings.Builder
	unity.WriteString("#include \"cuda_emu.hpp\"\n")
	for _, u := range m.Units {
		fmt.Fprintf(&unity, "#include %q\n", u.Name+".cu")
		own[u.Name+".cu"] = []byte(u.Source)
	}
	flags := []string{"-std=c++20", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off", "-w"}
	if runtime.GOARCH == "amd64" {
		flags = append(flags, "-mavx2", "-mfma", "-mf16c")
	}
	standIn := []string{"-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden"}
	objects, err := b.Objects(ctx, []toolchain.Unit{
		{Name: "kernels.cpp", Source: []byte(unity.String()), Headers: own, Flags: append(slices.Clone(flags), "-Og")},
		{Name: "fibers.cpp", Source: []byte(emulation["fibers.cpp"]), Headers: headers, Flags: append(slices.Clone(flags), "-O2", "-fvisibility=hidden")},
		{Name: "driver.cpp", Source: []byte(emulation["driver.cpp"]), Flags: standIn},
		{Name: "cublaslt.cpp", Source: []byte(emulation["cublaslt.cpp"]), Flags: standIn},
	})
	if err != nil {
		return nil, "", err
	}
	libs := []string{"-lstdc++", "-lm", "-lpthread", "-ldl"}
	kernels, err := b.Shared(ctx, objects[:2], libs)
	if err != nil {
		return nil, "", err
	}
	driver, err = b.Shared(ctx, objects[2:], libs)
	return map[string]string{"": kernels}, driver, err
}
