package cuda

import (
	"fmt"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// An impl is an implementation of a matmul that may be selected by the number of rows.
type impl struct {
	name, template string
	nt             int  // rows per thread block
	from           int  // minimum number of rows without a profile; −1: not used
	packPrivate    bool // blocks with one row pack the row themselves
}

// A matmul of 16-bit matrices, by the gemm kernel or by cuBLASLt.
const (
	implGemm   = "gemm"
	implCublas = "cublaslt"
)

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

// gemm emits the matmul of many rows: conversion of packed rows and weights to 16-bit
// floats, their product, and the epilogue.
func (m *matmul) gemm() error {
	u := m.u
	u.include("ifl_gemm.cuh")
	ld := (m.Weight.K + 63) &^ 63
	is := func(c impl) bool { return c.template == "" }
	widen, err := u.kernel("widen", u.name+"_widen", rowThreads, 0, map[string]any{
		"Doc": "rows of " + u.name + " as 16-bit numbers", "Count": m.count, "Act": m.act.name, "Rows": m.rows, "RowBytes": ctext.Wide(m.bytes), "K": m.Weight.K, "Ld": ld})
	if err != nil {
		return err
	}
	m.when(m.s.launch(widen, m.blocks(1)), is)
	unpack, err := u.kernel("unpack", u.name+"_unpack", 256, 0, map[string]any{
		"Doc": fmt.Sprintf("%s as 16-bit numbers", m.Arg.Value), "Panel": unpackType(m.Weight.DType), "W": m.weights, "K": m.Weight.K, "Ld": ld})
	if err != nil {
		return err
	}
	product, err := u.e.gemmKernel()
	if err != nil {
		return err
	}
	l := m.s.launch(0)
	l.Gemm = &manifest.CUDAGemm{N: layout.Round16(m.Weight.N), Ld: ld, Unpack: unpack, Kernel: product}
	m.when(l, is)
	finish, err := m.variant(impl{template: "finish", nt: 8})
	if err != nil {
		return err
	}
	m.when(finish, is)
	return nil
}

// gemmKernel returns the matmul kernel for 16-bit matrices, which all matmuls of the
// model share. Its unit also contains the kernel that measures memory bandwidth.
func (e *emitter) gemmKernel() (int, error) {
	if e.gemm > 0 {
		return e.gemm - 1, nil
	}
	u := e.unit("gemm")
	u.include("ifl_gemm.cuh")
	const stages, stageBytes = 4, 2 * manifest.GemmTile * 32 * 2 // IFL_PIPE, two tiles of IFL_DEPTH columns
	k, err := u.kernel("gemm", u.name, 256, stages*stageBytes, map[string]any{"Doc": "Product of 16-bit matrices"})
	if err != nil {
		return 0, err
	}
	read, err := u.kernel("read", u.name+"_read", 256, 0, map[string]any{"Doc": "reads memory"})
	if err != nil {
		return 0, err
	}
	e.gemm, e.out.Plan.Read = k+1, &read
	return k, u.end("the product of 16-bit matrices")
}
