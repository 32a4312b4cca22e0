package codegen

import (
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A cudaImpl is an implementation of a product that the number of rows may choose.
type cudaImpl struct {
	name, template string
	nt             int  // rows of a block of threads
	from           int  // used from so many rows on where nothing else is known; −1: not
	alone          bool // blocks with one row pack it themselves
}

// A product of 16-bit matrices, by the kernel that comes along or by cuBLASLt.
const (
	implGemm   = "gemm"
	implCublas = "cublaslt"
)

// choices lists the product's implementations.
func (m *cudaMatmul) choices() []cudaImpl {
	list := []cudaImpl{{name: "gemv", template: "gemv", nt: 1, from: 1, alone: m.alone}, {name: "gemv4", template: "gemv", nt: 4, from: 2}}
	if m.g.cat.Kernel("flat_gemm").Takes(m.w.dtype) && m.act.flat(m.w.dtype) != "" {
		list = append(list, cudaImpl{name: "flat_gemm", template: "flat_gemm", nt: 8, from: 5}, cudaImpl{name: "flat_gemm32", template: "flat_gemm", nt: 32, from: 9})
	}
	if m.g.cat.Kernel("unpack").Takes(m.w.dtype) {
		list = append(list, cudaImpl{name: implGemm, from: -1}, cudaImpl{name: implCublas, from: -1})
	}
	return list
}

// site lists the product among those whose kernel the number of rows chooses.
func (m *cudaMatmul) site() int {
	plan := &m.g.model.Plan
	s := manifest.Site{Name: m.g.graphAt.Name + "." + m.root.Args[1].Value.Name, N: m.w.n, K: m.w.k, DType: m.w.dtype.String()}
	for _, c := range m.impls {
		s.Impls, s.Rows = append(s.Impls, c.name), append(s.Rows, c.from)
	}
	plan.Sites = append(plan.Sites, s)
	return len(plan.Sites) - 1
}

// when makes a launch one of those implementations of the product that are as
// wanted.
func (m *cudaMatmul) when(l *manifest.CUDALaunch, wanted func(c cudaImpl) bool) {
	l.Choice = &manifest.CUDAChoice{Site: m.at}
	for i, c := range m.impls {
		if wanted(c) {
			l.Choice.Impls = append(l.Choice.Impls, i)
		}
	}
	l.Rows, l.Times = m.role, m.times()
}

// gemm writes the product of many rows: the packed rows and the weights as
// 16-bit numbers, the product of both, and the ops behind it.
func (m *cudaMatmul) gemm(u *cudaUnit) error {
	g := m.g
	u.include("ifl_gemm.cuh")
	ld := (m.w.k + 63) &^ 63
	is := func(c cudaImpl) bool { return c.template == "" }
	rows := m.rows
	if rows == "" {
		rows = "c->act"
	}
	widen, err := g.kernel(u, "widen", u.name+"_widen", cudaRowThreads, 0, map[string]any{
		"Doc": "rows of " + u.name + " as 16-bit numbers", "Count": m.count, "Act": m.act.name, "Rows": rows, "RowBytes": fmt.Sprintf("INT64_C(%d)", m.bytes), "K": m.w.k, "Ld": ld})
	if err != nil {
		return err
	}
	m.when(m.s.launch(widen, m.blocks(1)), is)
	unpack, err := g.kernel(u, "unpack", u.name+"_unpack", 256, 0, map[string]any{
		"Doc": fmt.Sprintf("%s as 16-bit numbers", m.root.Args[1].Value), "Panel": unpackType(m.w.dtype), "W": m.weights, "K": m.w.k, "Ld": ld})
	if err != nil {
		return err
	}
	product, err := g.gemmKernel()
	if err != nil {
		return err
	}
	l := m.s.launch(0)
	l.Gemm = &manifest.CUDAGemm{N: round16(m.w.n), Ld: ld, Unpack: unpack, Kernel: product}
	m.when(l, is)
	finish, err := m.variant(u, cudaImpl{template: "finish", nt: 8})
	if err != nil {
		return err
	}
	m.when(finish, is)
	return nil
}

// gemmKernel is the kernel that multiplies 16-bit matrices, which all products
// of the model share, in a unit of its own with the one that measures memory.
func (g *cudaGen) gemmKernel() (int, error) {
	if g.gemm > 0 {
		return g.gemm - 1, nil
	}
	u := g.unit("gemm")
	u.include("ifl_gemm.cuh")
	const stages, stageBytes = 4, 2 * manifest.GemmTile * 32 * 2 // IFL_PIPE, two tiles of IFL_DEPTH columns
	k, err := g.kernel(u, "gemm", u.name, 256, stages*stageBytes, map[string]any{"Doc": "Product of 16-bit matrices"})
	if err != nil {
		return 0, err
	}
	read, err := g.kernel(u, "read", u.name+"_read", 256, 0, map[string]any{"Doc": "reads memory"})
	if err != nil {
		return 0, err
	}
	g.gemm, g.model.Plan.Read = k+1, &read
	return k, g.end(u, "the product of 16-bit matrices.")
}
