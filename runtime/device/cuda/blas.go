//go:build unix

package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/kit/wheels"
)

// A BLASChoice is the path of cuBLASLt's library; "" searches for it.
type BLASChoice string

// noBLAS disables cuBLASLt: the model's own kernels compute all matmuls.
const noBLAS BLASChoice = "0"

// A blas is the loaded cuBLASLt library. It is only used for the 16-bit matmuls of a
// model.
type blas struct {
	file string
	at   [blasFunctions]uintptr
}

type blasFunction int

const (
	ltCreate blasFunction = iota
	ltDestroy
	ltDescCreate
	ltDescSet
	ltDescDestroy
	ltLayoutCreate
	ltLayoutDestroy
	ltPreferenceCreate
	ltPreferenceSet
	ltPreferenceDestroy
	ltHeuristic
	ltMatmul
	blasFunctions
)

var blasNames = [blasFunctions]string{
	"cublasLtCreate", "cublasLtDestroy", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatmulDescDestroy",
	"cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutDestroy",
	"cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulPreferenceDestroy",
	"cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul",
}

// blasVersions are the versions with the function signatures that are used here.
var blasVersions = []string{"libcublasLt.so.13", "libcublasLt.so.12"}

// openBLAS loads cuBLASLt: the named file, or the stand-in of a stand-in driver, or the
// library of the system, a CUDA installation or a Python package.
func openBLAS(d *Driver, name BLASChoice) (*blas, error) {
	if name == noBLAS {
		return nil, fmt.Errorf("cuBLASLt is disabled")
	}
	if name != "" {
		return bindBLAS(string(name))
	}
	if d.handle == 0 {
		return nil, fmt.Errorf("cuBLASLt is not used with a stand-in driver")
	}
	if at, err := purego.Dlsym(d.handle, blasNames[ltMatmul]); err == nil && at != 0 {
		return bindHandle("the stand-in driver", d.handle)
	}
	for _, file := range blasPlaces() {
		if b, err := bindBLAS(file); err == nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("no cuBLASLt (%s; run pip install nvidia-cublas, or set IFLOWC_CUBLASLT to the file)", strings.Join(blasVersions, ", "))
}

// blasPlaces lists the paths to try.
func blasPlaces() []string {
	var out []string
	for _, v := range blasVersions {
		out = append(out, v)
		for _, home := range []string{os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda"} {
			if home != "" {
				out = append(out, filepath.Join(home, "lib", v), filepath.Join(home, "lib64", v))
			}
		}
	}
	var patterns []string
	for _, v := range blasVersions {
		patterns = append(patterns, "nvidia/cu13/lib/"+v, "nvidia/cublas/lib/"+v, "torch/lib/"+v)
	}
	return append(out, wheels.Find(patterns...)...)
}

func bindBLAS(file string) (*blas, error) {
	handle, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("cuBLASLt cannot be loaded: %w", err)
	}
	return bindHandle(file, handle)
}

func bindHandle(file string, handle uintptr) (*blas, error) {
	b := &blas{file: file}
	for i, name := range blasNames {
		var err error
		if b.at[i], err = purego.Dlsym(handle, name); err != nil || b.at[i] == 0 {
			return nil, fmt.Errorf("%s lacks %s", file, name)
		}
	}
	return b, nil
}

// call calls a function of the library.
//
//go:uintptrescapes
func (b *blas) call(f blasFunction, args ...uintptr) error {
	if code, _, _ := purego.SyscallN(b.at[f], args...); int32(code) != 0 {
		return fmt.Errorf("%s: status %d", blasNames[f], int32(code))
	}
	return nil
}

// blasBytes returns the size of cuBLASLt's workspace in bytes.
func (g *GPU) blasBytes() int64 {
	if g.Compute >= 90 {
		return 32 << 20 // NVIDIA's recommendation for Hopper and later
	}
	return 4 << 20
}

// A gemmShape is the shape of a matmul of n rows of a matrix, [n, ld], with t input
// rows, [t, ld]; a row of the result is ldy floats.
type gemmShape struct{ n, t, ld, ldy int }

// A blasHandle is cuBLASLt on a GPU, with the algorithms chosen so far.
type blasHandle struct {
	*blas
	handle  uintptr
	scratch pointer
	bytes   int64
	plans   map[gemmShape]*blasPlan
}

// A blasPlan is cuBLASLt's description of a matmul.
type blasPlan struct {
	desc    uintptr
	layouts [3]uintptr // of the weights, the input rows and the result
	algo    [8]uint64
}

// Values of cuBLASLt's enumerations.
const (
	cublasCompute32F   = 68
	cudaR32F           = 0
	cudaR16F           = 2
	ltMatmulDescTransA = 3
	cublasOpT          = 1
	ltPreferenceBytes  = 1 // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
)

// on creates a handle for the current context, with the given workspace.
func (b *blas) on(scratch pointer, bytes int64) (*blasHandle, error) {
	h := &blasHandle{blas: b, scratch: scratch, bytes: bytes, plans: map[gemmShape]*blasPlan{}}
	return h, b.call(ltCreate, uintptr(unsafe.Pointer(&h.handle)))
}

// multiply enqueues a matmul. cuBLASLt expects column-major matrices: the row-major
// weights and input rows are a transposed and a plain matrix there, and the result has
// one column per input row.
func (h *blasHandle) multiply(s gemmShape, w, x, y pointer, on stream) error {
	p, err := h.plan(s)
	if err != nil {
		return fmt.Errorf("%s, matmul [%d, %d] with %d rows: %w", h.file, s.n, s.ld, s.t, err)
	}
	one, zero := float32(1), float32(0)
	err = h.call(ltMatmul, h.handle, p.desc, uintptr(unsafe.Pointer(&one)), uintptr(w), p.layouts[0], uintptr(x), p.layouts[1],
		uintptr(unsafe.Pointer(&zero)), uintptr(y), p.layouts[2], uintptr(y), p.layouts[2],
		uintptr(unsafe.Pointer(&p.algo[0])), uintptr(h.scratch), uintptr(h.bytes), uintptr(on))
	runtime.KeepAlive(p)
	return err
}

// plan returns the plan of a shape and creates it on first use.
func (h *blasHandle) plan(s gemmShape) (*blasPlan, error) {
	if p := h.plans[s]; p != nil {
		return p, nil
	}
	p := &blasPlan{}
	if err := h.describe(p, s); err != nil {
		h.release(p)
		return nil, err
	}
	h.plans[s] = p
	return p, nil
}

func (h *blasHandle) describe(p *blasPlan, s gemmShape) error {
	if err := h.call(ltDescCreate, uintptr(unsafe.Pointer(&p.desc)), cublasCompute32F, cudaR32F); err != nil {
		return err
	}
	transpose := int32(cublasOpT)
	if err := h.call(ltDescSet, p.desc, ltMatmulDescTransA, uintptr(unsafe.Pointer(&transpose)), 4); err != nil {
		return err
	}
	for i, l := range []struct{ kind, rows, cols, ld int }{{cudaR16F, s.ld, s.n, s.ld}, {cudaR16F, s.ld, s.t, s.ld}, {cudaR32F, s.n, s.t, s.ldy}} {
		if err := h.call(ltLayoutCreate, uintptr(unsafe.Pointer(&p.layouts[i])), uintptr(l.kind), uintptr(l.rows), uintptr(l.cols), uintptr(l.ld)); err != nil {
			return err
		}
	}
	return h.choose(p)
}

// choose sets the algorithm that the library's heuristic ranks first.
func (h *blasHandle) choose(p *blasPlan) error {
	var preference uintptr
	if err := h.call(ltPreferenceCreate, uintptr(unsafe.Pointer(&preference))); err != nil {
		return err
	}
	defer h.call(ltPreferenceDestroy, preference)
	bytes := uint64(h.bytes)
	if err := h.call(ltPreferenceSet, preference, ltPreferenceBytes, uintptr(unsafe.Pointer(&bytes)), 8); err != nil {
		return err
	}
	var found struct { // cublasLtMatmulHeuristicResult_t
		algo      [8]uint64
		workspace uint64
		state     int32
		waves     float32
		reserved  [4]int32
	}
	var n int32
	if err := h.call(ltHeuristic, h.handle, p.desc, p.layouts[0], p.layouts[1], p.layouts[2], p.layouts[2], preference, 1,
		uintptr(unsafe.Pointer(&found)), uintptr(unsafe.Pointer(&n))); err != nil {
		return err
	}
	if n == 0 || found.state != 0 {
		return fmt.Errorf("cuBLASLt has no algorithm for this shape")
	}
	p.algo = found.algo
	return nil
}

func (h *blasHandle) release(p *blasPlan) {
	for _, l := range p.layouts {
		if l != 0 {
			h.call(ltLayoutDestroy, l)
		}
	}
	if p.desc != 0 {
		h.call(ltDescDestroy, p.desc)
	}
}

func (h *blasHandle) close() {
	for _, p := range h.plans {
		h.release(p)
	}
	if h.handle != 0 {
		h.call(ltDestroy, h.handle)
	}
	h.plans, h.handle = nil, 0
}
