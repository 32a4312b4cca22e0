//go:build unix

package tune

import (
	"fmt"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// A Driver times the kernels of a library that contains the measuring driver
// (templates/cpu/probe_matmul.c) and the thread pool. It is not safe for concurrent
// use.
type Driver struct {
	symbol  func(name string) (uintptr, error) // returns the address of a function of the library
	threads int
	pool    uintptr
	next    int32 // the copy of the weights to read next, modulo the number of copies

	weights, arena *device.Region

	closePool, matmul, read, arenaBytes uintptr
}

// matmulJob mirrors ifl_probe of the driver.
type matmulJob struct {
	pool                                      uintptr
	weights, arena                            unsafe.Pointer
	copyBytes, panelBytes                     int64
	mm, tile, order, seconds, disturbed, busy unsafe.Pointer
	n, k, rows, kind, copies, next, runs, _   int32
}

// readJob mirrors ifl_probe_read_job of the driver.
type readJob struct {
	pool    uintptr
	from    unsafe.Pointer
	bytes   int64
	seconds unsafe.Pointer
	sink    uint64
	runs, _ int32
}

// Open loads a library and starts its threads. slab is the memory for copies of the
// weights, in bytes: several times the last level of cache (LLC) and at least twice the largest
// matrix.
func Open(path string, threads int, slab int64) (*Driver, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("loading the kernels: %w", err)
	}
	return start(func(name string) (uintptr, error) { return purego.Dlsym(handle, name) }, threads, slab)
}

// OpenLibrary is like Open for the library of a compiled model.
func OpenLibrary(lib *cpu.Library, threads int, slab int64) (*Driver, error) {
	return start(lib.Symbol, threads, slab)
}

func start(symbol func(string) (uintptr, error), threads int, slab int64) (*Driver, error) {
	d := &Driver{symbol: symbol, threads: threads}
	var err error
	var open, fill uintptr
	for _, s := range []struct {
		name string
		at   *uintptr
	}{
		{"ifl_pool_open", &open}, {"ifl_pool_close", &d.closePool}, {"ifl_probe_matmul", &d.matmul},
		{"ifl_probe_read", &d.read}, {"ifl_probe_arena", &d.arenaBytes}, {"ifl_probe_fill", &fill},
	} {
		if *s.at, err = symbol(s.name); err != nil {
			return nil, fmt.Errorf("loading the kernels: %w", err)
		}
	}
	if d.weights, err = device.Map(slab, "copies of weights"); err != nil {
		return nil, err
	}
	purego.SyscallN(fill, uintptr(unsafe.Pointer(&d.weights.Bytes[0])), uintptr(len(d.weights.Bytes)))
	// Pin the threads, so that two do not share a core for long on a busy machine,
	// which would disturb every sample.
	var cpus *int32
	if list := cpu.Pins(threads); list != nil {
		pins := make([]int32, threads)
		for i := range pins {
			pins[i] = int32(list[i])
		}
		cpus = &pins[0]
	}
	if d.pool, _, _ = purego.SyscallN(open, uintptr(threads), uintptr(unsafe.Pointer(cpus))); d.pool == 0 {
		d.weights.Free()
		return nil, fmt.Errorf("cannot start %d threads", threads)
	}
	return d, nil
}

// Close stops the threads and frees the memory.
func (d *Driver) Close() {
	purego.SyscallN(d.closePool, d.pool)
	d.weights.Free()
	d.arena.Free()
}

// ReadGBs measures the read bandwidth of all threads in GB/s: the best of a few passes
// over the slab.
func (d *Driver) ReadGBs() float64 {
	seconds := make([]float64, 5)
	job := &readJob{pool: d.pool, from: unsafe.Pointer(&d.weights.Bytes[0]), bytes: int64(len(d.weights.Bytes)),
		seconds: unsafe.Pointer(&seconds[0]), runs: int32(len(seconds))}
	d.call(d.read, unsafe.Pointer(job))
	runtime.KeepAlive(seconds)
	return float64(job.bytes) / slices.Min(seconds) / 1e9
}

// call runs a job; the calling thread acts as worker 0 of the pool.
func (d *Driver) call(fn uintptr, job unsafe.Pointer) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var pin runtime.Pinner
	pin.Pin(job)
	defer pin.Unpin()
	purego.SyscallN(fn, uintptr(job))
}

// ready allocates a shape's activations.
func (d *Driver) ready(s Shape, rows int) error {
	n, _, _ := purego.SyscallN(d.arenaBytes, uintptr(s.Act), uintptr(s.K), uintptr(rows), uintptr(d.threads))
	if d.arena != nil && len(d.arena.Bytes) >= int(n) {
		return nil
	}
	d.arena.Free()
	var err error
	d.arena, err = device.Map(int64(n), "activations")
	return err
}

// Time runs the candidates which[…] of a shape at a row count, interleaved in blocks (A
// B C C B A …). It returns each candidate's mean time per run in every block, in
// seconds. It omits blocks in which a thread was preempted. If all were disturbed, it
// measures again while that costs little, and otherwise returns the disturbed times
// with clean false.
func (d *Driver) Time(s Shape, rows, blocks int, which []int) (times [][]float64, clean bool, err error) {
	start := time.Now()
	for range 4 {
		if times, clean, err = d.once(s, rows, blocks, which); clean || err != nil || time.Since(start) > 20*time.Millisecond {
			break
		}
	}
	return times, clean, err
}

func (d *Driver) once(s Shape, rows, blocks int, which []int) ([][]float64, bool, error) {
	if err := d.ready(s, rows); err != nil {
		return nil, false, err
	}
	mm, tile := make([]uintptr, len(s.Candidates)), make([]int32, len(s.Candidates))
	for _, c := range which {
		var err error
		if mm[c], err = d.symbol(s.Candidates[c].Symbol); err != nil {
			return nil, false, err
		}
		tile[c] = int32(s.Candidates[c].Tile)
	}
	order := Interleave(which, blocks)
	seconds, disturbed := make([]float64, len(order)), make([]int32, len(order))
	busy := make([]float64, d.threads*len(order))
	panels := (s.N + 15) / 16
	job := &matmulJob{
		pool: d.pool, weights: unsafe.Pointer(&d.weights.Bytes[0]), arena: unsafe.Pointer(&d.arena.Bytes[0]),
		copyBytes: s.PanelBytes * int64(panels), panelBytes: s.PanelBytes,
		mm: unsafe.Pointer(&mm[0]), tile: unsafe.Pointer(&tile[0]), order: unsafe.Pointer(&order[0]), seconds: unsafe.Pointer(&seconds[0]), disturbed: unsafe.Pointer(&disturbed[0]), busy: unsafe.Pointer(&busy[0]),
		n: int32(s.N), k: int32(s.K), rows: int32(rows), kind: int32(s.Act), runs: int32(len(order)),
	}
	job.copies = int32(int64(len(d.weights.Bytes)) / job.copyBytes)
	if job.copies < 1 {
		return nil, false, fmt.Errorf("bug: a matrix of %d bytes in a slab of %d", job.copyBytes, len(d.weights.Bytes))
	}
	job.next = d.next % job.copies
	d.call(d.matmul, unsafe.Pointer(job))
	runtime.KeepAlive([]any{mm, tile, order, seconds, disturbed, busy})
	d.next = (d.next + job.runs) & (1<<30 - 1)
	repair(seconds, disturbed, busy)
	times, clean := ByCandidate(len(s.Candidates), 2*len(which), order[1:], seconds[1:], disturbed[1:])
	return times, clean, nil
}
