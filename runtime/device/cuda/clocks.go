//go:build unix

package cuda

import (
	"errors"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
)

// managementLibrary is NVML, which is part of the driver.
const managementLibrary = "libnvidia-ml.so.1"

// Values of NVML's clock enumeration.
const (
	nvmlClockSM     = 1
	nvmlClockMemory = 2
)

// clocks adds the current clocks, and the reasons for throttling, to a fingerprint. An
// error says why they are unknown; callers may ignore it.
func (g *GPU) clocks(to *dispatch.GPU) error {
	handle, err := purego.Dlopen(managementLibrary, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return err
	}
	var at [4]uintptr
	for i, name := range []string{"nvmlInit_v2", "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetClockInfo", "nvmlDeviceGetCurrentClocksThrottleReasons"} {
		if at[i], err = purego.Dlsym(handle, name); err != nil {
			return err
		}
	}
	var bus [32]byte
	if err := g.call(fnDeviceGetPCIBusId, uintptr(unsafe.Pointer(&bus[0])), uintptr(len(bus)), uintptr(g.device)); err != nil {
		return err
	}
	var device uintptr
	var core, memory uint32
	var reasons uint64
	ask := func(f int, args ...uintptr) {
		if code, _, _ := purego.SyscallN(at[f], args...); code != 0 && err == nil {
			err = errors.New("NVML does not report the clocks of " + g.Name)
		}
	}
	ask(0)
	ask(1, uintptr(unsafe.Pointer(&bus[0])), uintptr(unsafe.Pointer(&device)))
	if err != nil {
		return err
	}
	ask(2, device, nvmlClockSM, uintptr(unsafe.Pointer(&core)))
	ask(2, device, nvmlClockMemory, uintptr(unsafe.Pointer(&memory)))
	ask(3, device, uintptr(unsafe.Pointer(&reasons)))
	if err != nil {
		return err
	}
	to.RunningMHz, to.RunningMemory = append(to.RunningMHz, int(core)), append(to.RunningMemory, int(memory))
	to.ThrottleReasons = append(to.ThrottleReasons, reasons)
	return nil
}

// Fingerprint returns the attributes that determine the GPU's speed, without its
// current clocks.
func (d *Device) Fingerprint() *dispatch.GPU {
	g := d.GPU
	f := &dispatch.GPU{Name: g.Name, Compute: g.Compute, Processors: g.Processors, L2: int64(g.L2Bytes), ClockMHz: g.ClockKHz / 1000,
		MemoryMHz: g.MemoryKHz / 1000, BusBits: g.BusBits, ECC: g.ECC, Driver: g.Version, Emulated: d.Manifest.CUDADriver != ""}
	if c, err := d.chosen(); err == nil && c.blas != nil {
		f.BLAS = c.blas.file
	}
	return f
}

// Clocks adds the current clocks to a fingerprint.
func (t *Timer) Clocks(to *dispatch.GPU) error { return t.m.GPU.clocks(to) }
