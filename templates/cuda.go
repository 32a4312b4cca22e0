package templates

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/iflowc/iflowc/ir/tensor"
)

//go:embed cuda include/ifl_step.h
var cudaFiles embed.FS

// A CUDAKernel is a template of the CUDA target: the __global__ function of a
// region, with placeholders for the ops fused before and after its root op.
type CUDAKernel struct {
	Name string // the template's file name
	Op   string // the root op; "rows" for row ops
	Impl string // gemv, flat_gemm, …
	Doc  string
	Sum  string // order of summation
	// Types lists the supported weight or KV cache types; empty: any.
	Types []tensor.DType
	// Rows lists the numbers of activation rows per thread block; each is a separate
	// instance.
	Rows []int
	// Promises state what tests require of the machine code. REG is the maximum
	// number of registers per thread, BLOCKS the minimum number of resident blocks per
	// multiprocessor on every GPU, and SLOTS the maximum number of instructions of the
	// main loop per tensor-core instruction. Every other key is a regular expression
	// for the start of an instruction, with its minimum count. No kernel may spill.
	Promises map[string]int
	// Trellis are promises for trellis-coded weights, instead of those with the same key.
	Trellis map[string]int
	// Early reports whether the kernel may start before the kernels in front of it end,
	// because it waits for their results itself.
	Early bool

	body *template.Template
}

type cudaHeader struct {
	Doc      string         `yaml:"doc"`
	Op       string         `yaml:"op"`
	Impl     string         `yaml:"impl"`
	Types    []string       `yaml:"types"`
	Sum      string         `yaml:"sum"`
	Rows     []int          `yaml:"rows"`
	Promises map[string]int `yaml:"promises"`
	Trellis  map[string]int `yaml:"trellis"`
}

// A CUDACatalog holds the kernels of the CUDA target.
type CUDACatalog struct {
	kernels []*CUDAKernel
	format  *CUDAKernel
	formats map[tensor.DType]*format
}

// LoadCUDA returns the embedded CUDA catalog.
func LoadCUDA() (*CUDACatalog, error) {
	formats, err := loadFormats(files)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(cudaFiles, "cuda/*.cu.tmpl")
	if err != nil {
		return nil, err
	}
	c := &CUDACatalog{formats: formats}
	for _, name := range names {
		k, err := loadCUDAKernel(name)
		if err != nil {
			return nil, err
		}
		if k.Name == "format" {
			c.format = k
		} else {
			c.kernels = append(c.kernels, k)
		}
	}
	return c, nil
}

func loadCUDAKernel(name string) (*CUDAKernel, error) {
	var h cudaHeader
	t, types, err := openTemplate(cudaFiles, name, &h, &h.Types)
	if err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(cudaFiles, name)
	if err != nil {
		return nil, err
	}
	return &CUDAKernel{
		Early: strings.Contains(string(text), "ifl_await_inputs();"),
		Name:  strings.TrimSuffix(path.Base(name), ".cu.tmpl"), Op: h.Op, Impl: h.Impl, Doc: strings.TrimSpace(h.Doc), Sum: h.Sum,
		Types: types, Rows: h.Rows, Promises: h.Promises, Trellis: h.Trellis, body: t,
	}, nil
}

// PromisesFor returns the promises for weights of a type.
func (k *CUDAKernel) PromisesFor(dt tensor.DType) map[string]int {
	p := maps.Clone(k.Promises)
	if tensor.TrellisOf(dt) != nil {
		maps.Copy(p, k.Trellis)
	}
	return p
}

// Kernels returns all kernels, sorted by name.
func (c *CUDACatalog) Kernels() []*CUDAKernel { return c.kernels }

// Kernel returns the template called name. It panics if there is none.
func (c *CUDACatalog) Kernel(name string) *CUDAKernel {
	i := slices.IndexFunc(c.kernels, func(k *CUDAKernel) bool { return k.Name == name })
	if i < 0 {
		panic("bug: no CUDA template " + name)
	}
	return c.kernels[i]
}

// For returns the kernels that compute op with weights or a KV cache of type dt.
func (c *CUDACatalog) For(op string, dt tensor.DType) []*CUDAKernel {
	var out []*CUDAKernel
	for _, k := range c.kernels {
		if k.Op == op && k.Takes(dt) {
			out = append(out, k)
		}
	}
	return out
}

// Takes reports whether the kernel supports type dt.
func (k *CUDAKernel) Takes(dt tensor.DType) bool {
	return len(k.Types) == 0 || slices.Contains(k.Types, dt)
}

// Render executes the template with holes as its data and returns the CUDA C.
func (k *CUDAKernel) Render(holes any) (string, error) {
	var b strings.Builder
	if err := k.body.Execute(&b, holes); err != nil {
		return "", fmt.Errorf("cuda kernel %s: %w", k.Name, err)
	}
	return tidy(b.String()), nil
}

// A cudaFormat is the data of format.cu.tmpl.
type cudaFormat struct {
	*unit
	Unit, Quads, Units int
}

// Format returns the CUDA C of the struct that decodes block type dt.
func (c *CUDACatalog) Format(dt tensor.DType) (string, error) {
	f, err := c.formatOf(dt)
	if err != nil {
		return "", err
	}
	return c.format.Render(f)
}

func (c *CUDACatalog) formatOf(dt tensor.DType) (*cudaFormat, error) {
	f := c.formats[dt]
	if f == nil || f.unit == 0 || !c.format.Takes(dt) {
		return nil, fmt.Errorf("the cuda target has no weights of type %s", dt)
	}
	vectors, unitVectors := f.vectors(dt), f.unit
	if tensor.TrellisOf(dt) != nil {
		unitVectors = vectors
	}
	_, decode, err := f.decode(dt, unitVectors, 4) // kernels load activations for each four vectors
	if err != nil {
		return nil, err
	}
	if zero := tensor.Zero(dt); zero > 0 && tensor.TrellisOf(dt) == nil && zero < 128 { // kernels subtract 128
		decode = uses.ReplaceAllString(decode+"\n", fmt.Sprintf("USE($1, ifl_raise($2, %d));\n", 128-zero))
	}
	u := &unit{
		Type: dt.String(), Format: f.doc, Block: dt.Block(), CodeBytes: 64 * vectors, Signed: !tensor.HasBase(dt), Decode: decode,
		Trellis: levelsOf(dt, 128),
	}
	u.Stride = u.stride()
	units := vectors / unitVectors
	return &cudaFormat{unit: u, Unit: unitVectors, Units: units, Quads: dt.Block() / 4 / units}, nil
}

// CUDAFlatBuffers returns the columns of a chunk of flat_gemm for nt rows and weights of
// type dt, and the shared memory in bytes of two chunks and of the warps' rings: COLUMNS,
// BUFFER and WARP of ifl_flat.cuh.
func CUDAFlatBuffers(dt tensor.DType, nt int) (columns, bytes int) {
	if dt.IsBlock() {
		columns = 512
		return columns, 2 * (nt*(columns+64) + 2*columns/dt.Block()*(nt+2)*4)
	}
	columns = 128
	if nt > 32 {
		columns = 64
	}
	const rings = 8 * 5 * 32 * 32 // IFL_WARPS, IFL_STAGES, BYTES
	return columns, 2*nt*(4*columns+64) + rings
}

// GemmPiece returns the columns, and the bytes of a panel, that the matmuls of many
// rows load at once for weights of type dt. They equal PIECE and BYTES of
// ifl_fragments.cuh.
func (c *CUDACatalog) GemmPiece(dt tensor.DType) (columns, bytes int, err error) {
	if !dt.IsBlock() {
		return 64, 64 * 32, nil
	}
	f, err := c.formatOf(dt)
	if err != nil {
		return 0, 0, err
	}
	columns = max(64, 16*f.Quads)
	return columns, columns / f.Block * f.Stride, nil
}

// GemmColumns returns the order of the columns of activations for weights of type dt:
// the template argument of ifl_tiled_rows_of.
func (c *CUDACatalog) GemmColumns(dt tensor.DType) (int, error) {
	if !dt.IsBlock() {
		return 0, nil
	}
	f, err := c.formatOf(dt)
	if err != nil {
		return 0, err
	}
	return f.Quads, nil
}

// CUDAHeaders returns the headers that generated CUDA C includes, by file name.
func CUDAHeaders() map[string]string {
	return readAll("cuda/include/*.cuh", "include/ifl_step.h")
}

// CUDAEmulation returns the files of the CUDA emulation by name: the header that
// makes CUDA C valid C++, the thread executor, and the emulated driver.
func CUDAEmulation() map[string]string { return readAll("cuda/emu/*") }

func readAll(patterns ...string) map[string]string {
	out := map[string]string{}
	for _, p := range patterns {
		names, err := fs.Glob(cudaFiles, p)
		if err != nil {
			panic("bug: " + err.Error())
		}
		for _, name := range names {
			data, err := cudaFiles.ReadFile(name)
			if err != nil {
				panic("bug: " + err.Error())
			}
			out[path.Base(name)] = string(data)
		}
	}
	return out
}
