//go:build unix

package cpu

import (
	"runtime"
	"sync"
	"time"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/device"
)

// probes names the functions that a library may export to measure the CPU's peak:
// int64_t name(int64_t rounds) computes in registers and returns the number of
// operations that it did, two per multiply-add.
var probes = map[device.Arithmetic]string{
	device.MultiplyAddI8:  "ifl_probe_i8",
	device.MultiplyAddF32: "ifl_probe_f32",
}

// Peak runs a probe on every thread. It returns 0 if the library does not export it.
func (l *Library) Peak(op device.Arithmetic, threads int, long time.Duration) float64 {
	fn, err := purego.Dlsym(l.handle, probes[op])
	if err != nil || fn == 0 {
		return 0
	}
	return probe(fn, threads, long)
}

// PeakOf is like Peak for a library in a file, which need not be a model's library.
func PeakOf(path string, op device.Arithmetic, threads int, long time.Duration) (float64, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, err
	}
	fn, err := purego.Dlsym(handle, probes[op])
	if err != nil {
		return 0, err
	}
	return probe(fn, threads, long), nil
}

// probe runs a probe on every thread for about the given time and returns the sum of
// their GOP/s.
func probe(fn uintptr, threads int, long time.Duration) float64 {
	rounds := 1000
	for { // find the number of rounds that takes this long
		start := time.Now()
		purego.SyscallN(fn, uintptr(rounds))
		if d := time.Since(start); d > long/4 || rounds > 1<<40 {
			rounds = max(1, int(float64(rounds)*float64(long)/float64(d)))
			break
		}
		rounds *= 4
	}
	ops := make([]int64, threads)
	var wg sync.WaitGroup
	start := time.Now()
	for k := range threads {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			n, _, _ := purego.SyscallN(fn, uintptr(rounds))
			ops[k] = int64(n)
		})
	}
	wg.Wait()
	seconds := time.Since(start).Seconds()
	sum := int64(0)
	for _, n := range ops {
		sum += n
	}
	return float64(sum) / seconds / 1e9
}
