package cuda

import (
	"fmt"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// An impl is an implementation of a matmul that may be selected by the number of rows.
type impl struct {
	name, template string
	nt             int  // rows per thread block
	from           int  // minimum number of rows without a profile; −1: not used
	packPrivate    bool // blocks with one row pack the row themselves
}

// Matmuls of 16-bit numbers: the gemm kernel, and cuBLASLt.
const (
	implGemm   = "gemm"
	implCublas = "cublaslt"
)

// wgmmaTiles are the rows of activations per block of each implementation by wgmma.
var wgmmaTiles = map[string]int{"wgmma": 128, "wgmma256": 256}

// hopper is the compute capability that wgmma needs.
const hopper = 90

// choices returns the matmul's implementations, without those that have too little
// shared memory for the column groups of the epilogue.
func (m *matmul) choices() []impl {
	list := []impl{{name: "gemv", template: "gemv", nt: 1, from: 1, packPrivate: m.packPrivate}}
	if m.u.e.cat.Kernel("flat_gemm").Takes(m.Weight.DType) && m.act.flat(m.Weight.DType) != "" {
		for _, c := range []impl{{nt: 16, from: 2}, {nt: 32, from: 17}, {nt: 64, from: 33}} {
			if c.name, c.template = "flat_gemm", "flat_gemm"; c.nt > 16 {
				c.name = fmt.Sprint("flat_gemm", c.nt)
			}
			if m.memory(c).shared <= maxShared {
				list = append(list, c)
			}
		}
	} else {
		list = append(list, impl{name: "gemv4", template: "gemv", nt: 4, from: 2})
	}
	if m.u.e.cat.Kernel("unpack").Takes(m.Weight.DType) {
		list = append(list, impl{name: implGemm, from: -1}, impl{name: implCublas, from: -1})
	}
	if m.u.e.cat.Kernel("wgmma").Takes(m.Weight.DType) {
		list = append(list, impl{name: "wgmma", from: -1}, impl{name: "wgmma256", from: -1})
	}
	return list
}

// dispatched adds the matmul to the calls with kernels selected by the number of rows.
func (m *matmul) dispatched() int {
	p := &m.u.e.out.Plan
	s := manifest.Matmul{Name: m.Call.Name, N: m.Weight.N, K: m.Weight.K, DType: m.Weight.DType.String()}
	for _, c := range m.impls {
		s.Impls, s.Rows = append(s.Impls, c.name), append(s.Rows, c.from)
	}
	p.Matmuls = append(p.Matmuls, s)
	return len(p.Matmuls) - 1
}

// when restricts a launch to the matmul's implementations that satisfy a condition.
func (m *matmul) when(l *manifest.CUDALaunch, wanted func(c impl) bool) {
	l.Choice = &manifest.CUDAChoice{Matmul: m.at}
	for i, c := range m.impls {
		if wanted(c) {
			l.Choice.Impls = append(l.Choice.Impls, i)
		}
	}
	l.Rows, l.Times = m.region.Role, m.times()
}

// gemm emits the matmul of many rows: conversion of packed rows to f16, the product,
// and the epilogue. cuBLASLt also needs the weights as f16.
func (m *matmul) gemm() error {
	u := m.u
	u.include("ifl_gemm.cuh")
	piece, bytes, err := u.e.cat.GemmPiece(m.Weight.DType)
	if err != nil {
		return err
	}
	order, err := u.e.cat.GemmColumns(m.Weight.DType)
	if err != nil {
		return err
	}
	own := func(c impl) bool { return c.name == implGemm || wgmmaTiles[c.name] > 0 }
	blas := func(c impl) bool { return c.name == implCublas }
	if err := m.widen("tile", fmt.Sprintf("ifl_tiled_rows_of<%d>", order), (m.Weight.K+piece-1)/piece*piece, own); err != nil {
		return err
	}
	if err := m.multiply(piece, bytes); err != nil {
		return err
	}
	if u.e.cat.Kernel("wgmma").Takes(m.Weight.DType) {
		if err := m.wgmma(piece, bytes); err != nil {
			return err
		}
	}
	ld := (m.Weight.K + 63) &^ 63
	if err := m.widen("widen", "ifl_plain_rows", ld, blas); err != nil {
		return err
	}
	threads := 256
	if tensor.TrellisOf(m.Weight.DType) != nil {
		threads = 192 // four blocks per SM then have 80 registers per thread, not 64
	}
	unpack, err := u.kernel("unpack", u.name+"_unpack", threads, 0, map[string]any{
		"Doc": fmt.Sprintf("%s as 16-bit numbers", m.Arg.Value), "Panel": unpackType(m.Weight.DType), "W": m.weights, "K": m.Weight.K, "Ld": ld})
	if err != nil {
		return err
	}
	u.proms[u.name+"_unpack"] = u.e.cat.Kernel("unpack").PromisesFor(m.Weight.DType)
	l := m.s.launch(0)
	l.Gemm = &manifest.CUDAGemm{N: layout.Round16(m.Weight.N), Ld: ld, Unpack: unpack}
	m.when(l, blas)
	// Eight numbers per thread: two blocks of 256 threads then have 16 KB in flight, which
	// an SM needs for the bandwidth of an H100. Wide groups still fill all warps.
	finish, err := m.variant(impl{template: "finish", nt: max(2048/m.finishColumns(), warps)})
	if err != nil {
		return err
	}
	m.when(finish, func(c impl) bool { return own(c) || blas(c) })
	return u.e.readKernel()
}

// finishColumns returns the columns per block of the epilogue: whole groups, and 512
// consecutive bytes.
func (m *matmul) finishColumns() int { return (127 + m.Tail.Group) / m.Tail.Group * m.Tail.Group }

// widen launches the conversion of the packed rows to f16 in a layout with ld columns.
func (m *matmul) widen(name, layout string, ld int, wanted func(c impl) bool) error {
	k, err := m.u.kernel("widen", m.u.name+"_"+name, rowThreads, 0, map[string]any{
		"Doc": "rows of " + m.u.name + " as 16-bit numbers", "Count": m.count, "Act": m.act.name, "Rows": m.rows, "RowBytes": ctext.Wide(m.bytes),
		"K": m.Weight.K, "Ld": ld, "Layout": layout})
	if err == nil {
		m.when(m.s.launch(k, m.blocks(1)), wanted)
	}
	return err
}

// multiply launches the product of the rows in tiles, for weights that are loaded in
// pieces of some columns, bytes of each panel.
func (m *matmul) multiply(piece, bytes int) error {
	// As many stages as let two blocks fit on a GPU with 164 KB of shared memory per
	// multiprocessor (sm_80): latency is hidden by the other block.
	stages, shared := 0, 0
	for n := 2; n <= 3; n++ {
		if s := ringBytes(n, manifest.GemmTile, piece, bytes); n == 2 || 2*(s+1024) <= 164<<10 {
			stages, shared = n, s
		}
	}
	panels := m.Weight.Panels()
	k, err := m.u.kernel("gemm", m.u.name+"_gemm", gemmThreads, shared, map[string]any{
		"Doc": m.region.Doc + " for many rows", "Count": m.count, "Panel": fragmentType(m.Weight.DType), "Stages": stages, "Shared": shared,
		"W": m.weights, "K": m.Weight.K, "Panels": panels})
	if err == nil {
		proms := m.u.e.cat.Kernel("gemm").PromisesFor(m.Weight.DType)
		if panels < 8 { // less than a tile, as a router's: ptxas for sm_100 keeps the loop over a stage's 64 columns
			delete(proms, "HMMA")
			delete(proms, "SLOTS")
		}
		m.u.proms[m.u.name+"_gemm"] = proms
		m.when(m.s.launch(k, m.blocks(manifest.GemmTile), blocksOf((panels+7)/8)), func(c impl) bool { return c.name == implGemm })
	}
	return err
}

// wgmma launches the same product by wgmma. Its kernels are in a unit of the whole
// model that is compiled for sm_90a only.
func (m *matmul) wgmma(piece, bytes int) error {
	u := m.u.e.wgmmaUnit()
	u.decodes(m.Weight.DType)
	weights, err := u.names.Weight(m.Arg, m.region.Loop)
	if err != nil {
		return err
	}
	panels := m.Weight.Panels()
	for _, c := range m.impls {
		tile := wgmmaTiles[c.name]
		if tile == 0 {
			continue
		}
		const stages = 4 // IFL_WGMMA_STAGES
		shared := ringBytes(stages, tile, piece, bytes) + 2*8*stages
		name := fmt.Sprintf("%s_wgmma%d", m.u.name, tile)
		k, err := u.kernel("wgmma", name, wgmmaThreads, shared, map[string]any{
			"Doc": m.region.Doc + fmt.Sprintf(" in tiles of %d rows", tile), "Count": m.count, "Panel": fragmentType(m.Weight.DType), "NT": tile, "Shared": shared,
			"W": weights, "K": m.Weight.K, "Panels": panels})
		if err != nil {
			return err
		}
		u.proms[name] = u.e.cat.Kernel("wgmma").PromisesFor(m.Weight.DType)
		m.when(m.s.launch(k, m.blocks(tile), blocksOf((panels+7)/8)), func(o impl) bool { return o == c })
	}
	return nil
}

// wgmmaUnit returns the unit of the kernels by wgmma.
func (e *emitter) wgmmaUnit() *unit {
	if e.wgmma == nil {
		e.wgmma = e.unit("wgmma")
		e.wgmma.compute = hopper
		e.wgmma.include("ifl_wgmma.cuh")
		e.out.Plan.Needs = map[string]int{}
		for name := range wgmmaTiles {
			e.out.Plan.Needs[name] = hopper
		}
	}
	return e.wgmma
}

// Threads per block of gemm and wgmma: IFL_GEMM_THREADS and IFL_WGMMA_THREADS.
const (
	gemmThreads  = 128
	wgmmaThreads = 384
)

// ringBytes returns the size of a ring of chunks of 64 columns for a tile of
// activations, with pieces of eight panels: ifl_gemm_ring::BYTES.
func ringBytes(stages, tile, piece, bytes int) int {
	sub := piece / 64
	slots := (stages + 2*sub - 2) / sub
	return stages*tile*128 + slots*8*bytes
}

// fragmentType returns the C++ type that loads fragments of weights.
func fragmentType(dt tensor.DType) string {
	if dt.IsBlock() {
		return fmt.Sprintf("ifl_fragment_block<ifl_format_%s>", dt)
	}
	return fmt.Sprintf("ifl_fragment_float<ifl_pair_%s>", dt)
}

// readKernel adds the kernel that measures memory bandwidth to the model.
func (e *emitter) readKernel() error {
	if e.out.Plan.Read != nil {
		return nil
	}
	u := e.unit("read")
	read, err := u.kernel("read", u.name, 256, 0, map[string]any{"Doc": "reads memory"})
	if err != nil {
		return err
	}
	e.out.Plan.Read = &read
	return u.end("reads memory")
}
