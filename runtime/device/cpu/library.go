//go:build unix

// Package cpu runs a compiled model on threads of this process. It chooses the library
// for the CPU's instruction set, maps the memory that C code works on, and makes one C
// call per step. A test compares its mirrors of the structs in
// templates/include/ifl_step.h with a C compiler's layout.
package cpu

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/device"
)

var _ device.Device = (*Library)(nil)

// A Library is the loaded code of a model for one instruction set. It implements
// device.Device.
type Library struct {
	ISA    string
	handle uintptr

	stateBytes, arenaBytes, open, run, close uintptr
	move, moveInCells, copyCell              uintptr
	sumsLen, inputLen, hessiansLen           uintptr
	calibrate                                uintptr // 0: the library does not support calibration
	trace                                    uintptr // 0: it does not support tracing
	setAdapter                               uintptr // 0: the model has no sites for adapters
}

// Open loads the shared library in data, built for the given instruction set, and
// checks its ABI version. The library is never unloaded.
func Open(isa, data string) (*Library, error) {
	handle, err := loadImage(data)
	if err != nil {
		return nil, fmt.Errorf("loading the model's %s library: %w", isa, err)
	}
	return bind(isa, handle)
}

// OpenFile is like Open for a library in a file.
func OpenFile(isa, path string) (*Library, error) {
	path, err := filepath.Abs(path) // without a slash dlopen would search the system's library folders
	if err != nil {
		return nil, err
	}
	handle, err := loadFile(path)
	if err != nil {
		return nil, fmt.Errorf("loading the model's %s library: %w", isa, err)
	}
	return bind(isa, handle)
}

func bind(isa string, handle uintptr) (*Library, error) {
	l := &Library{ISA: isa, handle: handle}
	var abi uintptr
	for _, s := range []struct {
		name string
		at   *uintptr
	}{
		{"ifl_abi", &abi}, {"ifl_state_bytes", &l.stateBytes}, {"ifl_arena_bytes", &l.arenaBytes},
		{"ifl_open", &l.open}, {"ifl_run", &l.run}, {"ifl_close", &l.close},
		{"ifl_move", &l.move}, {"ifl_move_in_cells", &l.moveInCells}, {"ifl_copy_cell", &l.copyCell},
	} {
		address, err := purego.Dlsym(handle, s.name)
		if err != nil || address == 0 {
			return nil, fmt.Errorf("the model's %s library lacks the symbol %s; compile the model again", isa, s.name)
		}
		*s.at = address
	}
	if at, err := purego.Dlsym(handle, "ifl_calib_start"); err == nil {
		l.calibrate = at
		l.sumsLen, _ = purego.Dlsym(handle, "ifl_calib_sums")
		l.inputLen, _ = purego.Dlsym(handle, "ifl_calib_row_len")
		l.hessiansLen, _ = purego.Dlsym(handle, "ifl_calib_hessians")
	}
	l.trace, _ = purego.Dlsym(handle, "ifl_trace")
	l.setAdapter, _ = purego.Dlsym(handle, "ifl_set_adapter")
	if got, _, _ := purego.SyscallN(abi); int32(got) != device.ABI {
		return nil, fmt.Errorf("the model's %s library has step ABI %d, this runtime has %d; compile the model again", isa, int32(got), device.ABI)
	}
	return l, nil
}

// Symbol returns the address of a function of the library.
func (l *Library) Symbol(name string) (uintptr, error) {
	address, err := purego.Dlsym(l.handle, name)
	if err != nil || address == 0 {
		return 0, fmt.Errorf("the model's %s library lacks the symbol %s; compile the model again", l.ISA, name)
	}
	return address, nil
}

// Info returns the instruction set and the sizes of pages and cells; Config.Weights holds the weights.
func (l *Library) Info() device.Info {
	return device.Info{Name: l.ISA, InFlight: 1, PageBytes: l.bytes(1, 0), CellBytes: l.bytes(0, 1)}
}

// bytes returns the size of the given numbers of KV cache pages and of cells.
func (l *Library) bytes(pages, cells int) int64 {
	n, _, _ := purego.SyscallN(l.stateBytes, uintptr(pages), uintptr(cells))
	return int64(n)
}

// ScratchBytes returns the size of the scratch memory for the sizes in cfg.
func (l *Library) ScratchBytes(cfg *device.Config) int64 {
	n, _, _ := purego.SyscallN(l.arenaBytes, uintptr(cfg.Threads), uintptr(cfg.MaxTokens), uintptr(cfg.MaxOutRows), uintptr(cfg.MaxSeqs))
	return int64(n)
}

// loadImage writes data to a file and loads it. The file needs a unique name: dlopen
// identifies libraries by name, so a second library under a reused /proc/self/fd/N
// would resolve to the first. The file is removed after loading. Some systems mount the
// temporary folder noexec, so loadImage tries several folders, and a memory file last.
func loadImage(data string) (uintptr, error) {
	var first error
	for _, dir := range []string{cacheDir(), os.TempDir(), "/dev/shm"} {
		handle, err := loadIn(dir, data)
		if err == nil {
			return handle, nil
		}
		if first == nil {
			first = err
		}
	}
	if handle, err := loadMemory(data); err == nil {
		return handle, nil
	}
	return 0, first
}

// cacheDir returns iflowc's cache folder.
func cacheDir() string {
	if dir := os.Getenv("IFLOWC_CACHE"); dir != "" {
		return dir
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "iflowc")
	}
	return os.TempDir()
}

func loadIn(dir, data string) (uintptr, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	f, err := os.CreateTemp(dir, "model-*.so")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return 0, err
	}
	path, err := filepath.Abs(f.Name())
	if err != nil {
		return 0, err
	}
	return loadFile(path)
}

// opened records the files that loadFile has loaded. loadFile holds its lock while it
// loads one, because the page protections of a library are not final until then; see
// Release.
var opened = struct {
	sync.Mutex
	files map[string]bool
}{files: map[string]bool{}}

func loadFile(path string) (uintptr, error) {
	opened.Lock()
	defer opened.Unlock()
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err == nil {
		opened.files[path] = true
	}
	return handle, err
}
