//go:build unix

package ptx

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// A Driver implements the calls of the CUDA driver API that runtime/device/cuda
// makes, on the CPU. Its modules are PTX and its memory is that of the process.
// Launches run synchronously; graphs are refused.
type Driver struct {
	mu      sync.Mutex
	Err     error // first error of a kernel or module
	Ran     map[string]int
	regions []region // of device memory, sorted by address
	modules []*Module
	kernels []kernelOf
	calls   map[string]uintptr
}

type region struct {
	at      uint64
	data    []byte
	written bool // by a kernel
}

type kernelOf struct {
	m    *Module
	name string
}

// Codes of CUresult.
const (
	success      = 0
	invalidValue = 1
	noMemory     = 2
	notFound     = 500
	launchFailed = 719
	notSupported = 801
)

// NewDriver returns a driver with one device of compute capability 9.0.
func NewDriver() *Driver {
	d := &Driver{Ran: map[string]int{}, calls: map[string]uintptr{}}
	ok1 := func(uintptr) uintptr { return success }
	ok2 := func(_, _ uintptr) uintptr { return success }
	no2 := func(_, _ uintptr) uintptr { return notSupported }
	copyBytes := func(to, from, n, _ uintptr) uintptr {
		copy(unsafe.Slice((*byte)(at(to)), n), unsafe.Slice((*byte)(at(from)), n))
		return success
	}
	for name, f := range map[string]any{
		"cuInit": ok1, "cuDriverGetVersion": func(p uintptr) uintptr { return give32(p, 13000) },
		"cuDeviceGetCount": func(p uintptr) uintptr { return give32(p, 1) },
		"cuDeviceGet":      func(p, _ uintptr) uintptr { return give32(p, 0) },
		"cuDeviceGetName":  func(p, n, _ uintptr) uintptr { copy(unsafe.Slice((*byte)(at(p)), n), "PTX\x00"); return success },
		"cuDeviceGetAttribute": func(p, a, _ uintptr) uintptr {
			return give32(p, map[uintptr]int32{16: 4, 75: 9, 76: 0, 97: 227 << 10}[a])
		},
		"cuDeviceGetPCIBusId":          func(p, n, _ uintptr) uintptr { copy(unsafe.Slice((*byte)(at(p)), n), "\x00"); return success },
		"cuDevicePrimaryCtxRetain":     func(p, _ uintptr) uintptr { return give(p, 1) },
		"cuDevicePrimaryCtxRelease_v2": ok1, "cuCtxSetCurrent": ok1,
		"cuMemGetInfo_v2": func(free, all uintptr) uintptr { give(free, 8<<30); return give(all, 8<<30) },
		"cuMemAlloc_v2":   d.alloc, "cuMemFree_v2": d.free,
		"cuMemHostRegister_v2": func(_, _, _ uintptr) uintptr { return success }, "cuMemHostUnregister": ok1,
		"cuMemHostGetDevicePointer_v2": func(p, h, _ uintptr) uintptr { return give(p, uint64(h)) },
		"cuMemcpyHtoDAsync_v2":         copyBytes, "cuMemcpyDtoHAsync_v2": copyBytes, "cuMemcpyDtoDAsync_v2": copyBytes,
		"cuMemsetD8Async": func(to, v, n, _ uintptr) uintptr {
			b := unsafe.Slice((*byte)(at(to)), n)
			for i := range b {
				b[i] = byte(v)
			}
			return success
		},
		"cuStreamCreate":      func(p, _ uintptr) uintptr { return give(p, 1) },
		"cuStreamSynchronize": ok1, "cuStreamDestroy_v2": ok1,
		"cuStreamBeginCapture_v2": no2, "cuStreamEndCapture": no2,
		"cuGraphInstantiateWithFlags": func(_, _, _ uintptr) uintptr { return notSupported },
		"cuGraphLaunch":               no2, "cuGraphExecDestroy": ok1, "cuGraphDestroy": ok1,
		"cuEventCreate":     func(p, _ uintptr) uintptr { return give(p, 1) },
		"cuEventDestroy_v2": ok1, "cuEventRecord": ok2, "cuEventSynchronize": ok1,
		"cuEventElapsedTime": func(p, _, _ uintptr) uintptr { return give32(p, 0) },
		"cuModuleLoadData":   d.load, "cuModuleUnload": ok1, "cuModuleGetFunction": d.function,
		"cuFuncGetAttribute": d.attribute,
		"cuFuncSetAttribute": func(_, _, _ uintptr) uintptr { return success },
		"cuLaunchKernelEx":   d.launch,
		"cuGetErrorName":     func(code, p uintptr) uintptr { return give(p, uint64(uintptr(unsafe.Pointer(&errorName[0])))) },
	} {
		d.calls[name] = purego.NewCallback(f)
	}
	return d
}

var errorName = []byte("error of the PTX driver\x00")

// Call returns the address of a driver function, or 0.
func (d *Driver) Call(name string) uintptr { return d.calls[name] }

// at converts an address from the caller of the driver to a pointer.
func at(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

func give(p uintptr, v uint64) uintptr { *(*uint64)(at(p)) = v; return success }

func give32(p uintptr, v int32) uintptr { *(*int32)(at(p)) = v; return success }

// alloc maps new pages, filled with garbage.
func (d *Driver) alloc(p, n uintptr) uintptr {
	data, err := syscall.Mmap(-1, 0, int(n+4095)&^4095, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return noMemory
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.add(data[:n])
	return give(p, addressOf(data))
}

// add registers bytes as device memory.
func (d *Driver) add(data []byte) {
	if len(data) == 0 {
		return
	}
	r := region{at: addressOf(data), data: data}
	i, _ := slices.BinarySearchFunc(d.regions, r.at, func(r region, at uint64) int { return compare(r.at, at) })
	d.regions = slices.Insert(d.regions, i, r)
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (d *Driver) free(p uintptr) uintptr {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, r := range d.regions {
		if r.at == uint64(p) {
			d.regions = slices.Delete(d.regions, i, i+1)
			if syscall.Munmap(r.data[:cap(r.data)]) != nil {
				return invalidValue
			}
			return success
		}
	}
	return invalidValue
}

// At returns bytes of device memory.
func (d *Driver) At(address uint64, size int) ([]byte, error) {
	r := d.region(address)
	if r == nil || address+uint64(size) > r.at+uint64(len(r.data)) {
		return nil, fmt.Errorf("%d bytes at %#x are in no memory of the device", size, address)
	}
	return r.data[address-r.at:][:size], nil
}

// Wrote and Written implement Written.
func (d *Driver) Wrote(address uint64) {
	if r := d.region(address); r != nil {
		r.written = true
	}
}

func (d *Driver) Written(address uint64) bool {
	r := d.region(address)
	return r != nil && r.written
}

// region returns the allocation with an address, or nil.
func (d *Driver) region(address uint64) *region {
	i, found := slices.BinarySearchFunc(d.regions, address, func(r region, at uint64) int { return compare(r.at, at) })
	if !found {
		i--
	}
	if i < 0 || address >= d.regions[i].at+uint64(len(d.regions[i].data)) {
		return nil
	}
	return &d.regions[i]
}

// fail keeps the first error.
func (d *Driver) fail(err error, code uintptr) uintptr {
	if d.Err == nil {
		d.Err = err
	}
	return code
}

// load parses a module; its text ends with a zero byte.
func (d *Driver) load(p, image uintptr) uintptr {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, err := Parse(text(image))
	if err != nil {
		return d.fail(err, invalidValue)
	}
	for _, g := range m.globals {
		d.add(g)
	}
	d.modules = append(d.modules, m)
	return give(p, uint64(len(d.modules)))
}

// text returns the text at an address up to a zero byte.
func text(p uintptr) string {
	n := 0
	for *(*byte)(unsafe.Add(at(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(at(p)), n))
}

func (d *Driver) function(p, module, name uintptr) uintptr {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.modules[module-1]
	k := kernelOf{m, text(name)}
	if _, ok := m.Params(k.name); !ok {
		return notFound
	}
	d.kernels = append(d.kernels, k)
	return give(p, uint64(len(d.kernels)))
}

// attribute returns the size of a kernel's shared variables, the only attribute that the
// runtime reads.
func (d *Driver) attribute(p, a, f uintptr) uintptr {
	const sharedSize = 1 // CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
	if a != sharedSize {
		return invalidValue
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kernels[f-1]
	return give32(p, int32(k.m.functions[k.name].bytes))
}

// launch runs a kernel; config is a CUlaunchConfig: grid, block and shared memory.
func (d *Driver) launch(config, f, params, _ uintptr) uintptr {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kernels[f-1]
	sizes, _ := k.m.Params(k.name)
	size := *(*[7]uint32)(at(config))
	const attributes = 48 // offset of their number; the only one is that of an early start
	l := Launch{Grid: [3]uint32(size[:3]), Block: [3]uint32(size[3:6]), Shared: int(size[6]), Early: *(*uint32)(at(config + attributes)) > 0}
	for i, p := range unsafe.Slice((*uintptr)(at(params)), len(sizes)) {
		l.Args = append(l.Args, unsafe.Slice((*byte)(at(p)), sizes[i]))
	}
	d.Ran[k.name]++
	if err := k.m.Run(k.name, l, d); err != nil {
		return d.fail(err, launchFailed)
	}
	return success
}
