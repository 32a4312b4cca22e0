//go:build unix

package cuda

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// Driver errors for images that cannot be loaded.
const (
	codeInvalidImage   = 200 // CUDA_ERROR_INVALID_IMAGE
	codeNoBinary       = 209 // CUDA_ERROR_NO_BINARY_FOR_GPU
	codeUnsupportedPTX = 222 // CUDA_ERROR_UNSUPPORTED_PTX_VERSION
)

// A kernel is a function of a loaded image.
type kernel struct {
	handle  uintptr
	threads int
	shared  int
	early   bool // may start before the kernels in front of it end
}

// loadKernels loads the images and looks up every kernel of the plan in the image of
// its unit.
func (g *GPU) loadKernels(plan *manifest.CUDA, images []image) ([]kernel, error) {
	modules, err := g.loadImages(images)
	if err != nil {
		return nil, err
	}
	var out []kernel
	for _, k := range plan.Kernels {
		if k.Compute != 0 && !g.hasImage(plan, k.Compute) {
			out = append(out, kernel{}) // never launched
			continue
		}
		m, err := moduleOf(modules, k)
		if err != nil {
			return nil, err
		}
		one, err := g.kernelOf(m, k)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// hasImage reports whether kernels for one compute capability can run: on its GPUs, if
// their image is there. The emulation has one image for all kernels.
func (g *GPU) hasImage(plan *manifest.CUDA, compute int) bool {
	return g.Compute == compute && slices.ContainsFunc(plan.Images, func(i manifest.CUDAImage) bool { return i.Compute == compute || i.Unit == "" })
}

// loadImage loads an image. It copies the image, because the driver requires an
// alignment that embedded data may lack.
func (g *GPU) loadImage(data string) (module uintptr, err error) {
	aligned, err := device.Map(int64(len(data)), "an image of kernels")
	if err != nil {
		return 0, err
	}
	defer aligned.Free()
	copy(aligned.Bytes, data)
	err = g.call(fnModuleLoadData, uintptr(unsafe.Pointer(&module)), uintptr(unsafe.Pointer(&aligned.Bytes[0])))
	return module, err
}

// kernelOf looks up a kernel and loads its code. cuModuleGetFunction may leave a part of
// that to the first launch (lazy loading), which is not allowed during a capture.
func (g *GPU) kernelOf(module uintptr, k manifest.CUDAKernel) (kernel, error) {
	out := kernel{threads: k.Threads, shared: k.Shared, early: k.Early && g.Early && g.Compute >= 90}
	name := append([]byte(k.Name), 0)
	if err := g.call(fnModuleGetFunction, uintptr(unsafe.Pointer(&out.handle)), module, uintptr(unsafe.Pointer(&name[0]))); err != nil {
		return out, fmt.Errorf("kernel %s: %w; compile the model again", k.Name, err)
	}
	if g.has(fnFuncLoad) {
		if err := g.call(fnFuncLoad, out.handle); err != nil {
			return out, fmt.Errorf("loading kernel %s: %w", k.Name, err)
		}
	}
	return out, g.allowShared(&out, k.Name)
}

// allowShared opts the kernel in to its shared memory if it needs more than every
// kernel may use. Variables of fixed size count besides the dynamic part.
func (g *GPU) allowShared(k *kernel, name string) error {
	const (
		plain         = 48 << 10 // available to every kernel without opt-in
		staticShared  = 1        // CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
		dynamicShared = 8        // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
	)
	var fixed int32
	if err := g.call(fnFuncGetAttribute, uintptr(unsafe.Pointer(&fixed)), staticShared, k.handle); err != nil {
		return err
	}
	switch n := int(fixed) + k.shared; {
	case n <= plain:
		return nil
	case n > g.SharedPerBlock:
		return fmt.Errorf("kernel %s needs %d bytes of shared memory (%d of them fixed), %s supports %d", name, n, fixed, g.Name, g.SharedPerBlock)
	}
	return g.call(fnFuncSetAttribute, k.handle, dynamicShared, uintptr(k.shared))
}

// launch enqueues a kernel; args are pointers to its arguments.
func (g *GPU) launch(k kernel, grid [3]int, s stream, args ...unsafe.Pointer) error {
	l := launchConfig{grid: [3]uint32{uint32(grid[0]), uint32(grid[1]), uint32(grid[2])}, block: [3]uint32{uint32(k.threads), 1, 1}, shared: uint32(k.shared), stream: s}
	if k.early {
		l.attributes, l.count = &startsEarly, 1
	}
	return g.call(fnLaunchKernelEx, uintptr(unsafe.Pointer(&l)), k.handle, uintptr(unsafe.Pointer(&args[0])), 0)
}

// startsEarly lets a kernel start before those in front of it end:
// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.
var startsEarly = launchAttribute{id: 6, value: [16]uint32{1}}

// launchConfig mirrors CUlaunchConfig, and launchAttribute CUlaunchAttribute.
type launchConfig struct {
	grid, block [3]uint32
	shared      uint32
	stream      stream
	attributes  *launchAttribute
	count       uint32
}

type launchAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}
