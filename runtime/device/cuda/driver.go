//go:build unix

package cuda

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// libraryName is the driver's library; $IFLOWC_LIBCUDA overrides it.
const libraryName = "libcuda.so.1"

// A function is a driver function: an index into Driver.at.
type function int

// The functions that are used, in the order of names.
const (
	fnInit function = iota
	fnDriverGetVersion
	fnDeviceGetCount
	fnDeviceGet
	fnDeviceGetName
	fnDeviceGetAttribute
	fnDeviceGetPCIBusId
	fnDevicePrimaryCtxRetain
	fnDevicePrimaryCtxRelease
	fnCtxSetCurrent
	fnMemGetInfo
	fnMemAlloc
	fnMemFree
	fnMemHostRegister
	fnMemHostUnregister
	fnMemHostGetDevicePointer
	fnMemcpyHtoDAsync
	fnMemcpyDtoHAsync
	fnMemcpyDtoDAsync
	fnMemsetD8Async
	fnStreamCreate
	fnStreamSynchronize
	fnStreamDestroy
	fnStreamBeginCapture
	fnStreamEndCapture
	fnGraphInstantiate
	fnGraphLaunch
	fnGraphExecDestroy
	fnGraphDestroy
	fnEventCreate
	fnEventDestroy
	fnEventRecord
	fnEventSynchronize
	fnEventElapsedTime
	fnModuleLoadData
	fnModuleUnload
	fnModuleGetFunction
	fnFuncGetAttribute
	fnFuncSetAttribute
	fnLaunchKernelEx
	fnGetErrorName
	fnFuncLoad // since CUDA 12.4; older drivers lack it
	functions
	required = fnFuncLoad // the functions before this one
)

// names are the symbols; the suffix _v2 is the current version, as in CUDA's header.
var names = [functions]string{
	"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute", "cuDeviceGetPCIBusId",
	"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuCtxSetCurrent",
	"cuMemGetInfo_v2", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostRegister_v2", "cuMemHostUnregister", "cuMemHostGetDevicePointer_v2",
	"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async",
	"cuStreamCreate", "cuStreamSynchronize", "cuStreamDestroy_v2", "cuStreamBeginCapture_v2", "cuStreamEndCapture",
	"cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphExecDestroy", "cuGraphDestroy",
	"cuEventCreate", "cuEventDestroy_v2", "cuEventRecord", "cuEventSynchronize", "cuEventElapsedTime",
	"cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction", "cuFuncGetAttribute", "cuFuncSetAttribute", "cuLaunchKernelEx", "cuGetErrorName",
	"cuFuncLoad",
}

// Device attributes (CUdevice_attribute).
const (
	attrClock           = 13 // kHz
	attrMultiprocessors = 16
	attrECC             = 32
	attrMemoryClock     = 36 // kHz
	attrBusWidth        = 37 // bits
	attrL2              = 38 // bytes
	attrMajor           = 75
	attrMinor           = 76
	attrSharedOptIn     = 97
)

// A Driver is the loaded and initialized library of the CUDA driver.
type Driver struct {
	at      [functions]uintptr
	handle  uintptr // of the library; 0: stand-in functions of this program
	Version int     // 13000 for CUDA 13.0
}

// OpenDriver loads the library at path; if path is empty, $IFLOWC_LIBCUDA or the
// system's library.
func OpenDriver(path string) (*Driver, error) {
	if path == "" {
		path = os.Getenv("IFLOWC_LIBCUDA")
	}
	if path == "" {
		path = libraryName
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("no CUDA driver: %w", err)
	}
	d := &Driver{handle: handle}
	for i, name := range names {
		if at, err := purego.Dlsym(handle, name); err == nil {
			d.at[i] = at
		}
		if d.at[i] == 0 && function(i) < required {
			return nil, fmt.Errorf("the CUDA driver %s lacks %s; install a newer driver (CUDA 12 or later)", path, name)
		}
	}
	if err := d.call(fnInit, 0); err != nil {
		return nil, fmt.Errorf("initializing the CUDA driver: %w", err)
	}
	var version int32
	if err := d.call(fnDriverGetVersion, uintptr(unsafe.Pointer(&version))); err != nil {
		return nil, err
	}
	d.Version = int(version)
	return d, nil
}

// has reports whether the driver has an optional function.
func (d *Driver) has(f function) bool { return d.at[f] != 0 }

// call calls a function of the driver.
//
//go:uintptrescapes
func (d *Driver) call(f function, args ...uintptr) error {
	code, _, _ := purego.SyscallN(d.at[f], args...)
	if int32(code) == 0 {
		return nil
	}
	return &Error{Call: names[f], Code: int(int32(code)), Name: d.errorName(int32(code))}
}

func (d *Driver) errorName(code int32) string {
	var text *byte
	if r, _, _ := purego.SyscallN(d.at[fnGetErrorName], uintptr(code), uintptr(unsafe.Pointer(&text))); r != 0 || text == nil {
		return fmt.Sprintf("error %d", code)
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(text), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(text, n))
}

// An Error is the error of a driver call. After an error in a kernel (illegal address,
// ECC error), all later calls return the same error.
type Error struct {
	Call string
	Code int
	Name string
}

func (e *Error) Error() string { return e.Call + ": " + e.Name }

// codeOutOfMemory is CUDA_ERROR_OUT_OF_MEMORY.
const codeOutOfMemory = 2

// A GPU is one device with its primary context.
type GPU struct {
	*Driver
	Name           string
	Compute        int // 90 for compute capability 9.0
	Processors     int // streaming multiprocessors (SMs)
	SharedPerBlock int // maximum shared memory of a block, in bytes (opt-in)
	L2Bytes        int // size of the L2 cache
	// Maximum clocks and the width of the memory bus; 0: unknown.
	ClockKHz, MemoryKHz, BusBits int
	ECC                          bool
	Early                        bool // start kernels before those in front of them end, if the GPU can (programmatic dependent launch)

	device  int32
	context uintptr
}

// OpenGPU opens device number i.
func (d *Driver) OpenGPU(i int) (*GPU, error) {
	var n int32
	if err := d.call(fnDeviceGetCount, uintptr(unsafe.Pointer(&n))); err != nil {
		return nil, err
	}
	if i < 0 || i >= int(n) {
		return nil, fmt.Errorf("no CUDA device %d: the driver reports %d devices", i, n)
	}
	g := &GPU{Driver: d, Early: os.Getenv("IFLOWC_CUDA_EARLY") != "0"}
	if err := d.call(fnDeviceGet, uintptr(unsafe.Pointer(&g.device)), uintptr(i)); err != nil {
		return nil, err
	}
	var name [256]byte
	if err := d.call(fnDeviceGetName, uintptr(unsafe.Pointer(&name)), uintptr(len(name)), uintptr(g.device)); err != nil {
		return nil, err
	}
	for at, c := range name {
		if c == 0 {
			g.Name = string(name[:at])
			break
		}
	}
	var major, minor, ecc int
	for _, a := range []struct {
		attribute uintptr
		to        *int
	}{
		{attrMajor, &major}, {attrMinor, &minor}, {attrMultiprocessors, &g.Processors}, {attrSharedOptIn, &g.SharedPerBlock}, {attrL2, &g.L2Bytes},
		{attrClock, &g.ClockKHz}, {attrMemoryClock, &g.MemoryKHz}, {attrBusWidth, &g.BusBits}, {attrECC, &ecc},
	} {
		var v int32
		if err := d.call(fnDeviceGetAttribute, uintptr(unsafe.Pointer(&v)), a.attribute, uintptr(g.device)); err != nil {
			return nil, err
		}
		*a.to = int(v)
	}
	g.Compute, g.ECC = 10*major+minor, ecc != 0
	return g, d.call(fnDevicePrimaryCtxRetain, uintptr(unsafe.Pointer(&g.context)), uintptr(g.device))
}

// enter makes the device's context current on this thread, which it locks until leave.
func (g *GPU) enter() error {
	runtime.LockOSThread()
	if err := g.call(fnCtxSetCurrent, g.context); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	return nil
}

func (g *GPU) leave() { runtime.UnlockOSThread() }
