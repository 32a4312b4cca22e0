//go:build unix

package cpu

import (
	"unsafe"

	"github.com/iflowc/iflowc/runtime/device"
)

// stepHeader mirrors struct ifl_step. Its pointers point outside Go's heap.
type stepHeader struct {
	abi, entry            int32
	tokens, outRows, seqs int32
	maskWords             int32
	id, pos, seq, slot    unsafe.Pointer
	types                 unsafe.Pointer
	outRow, first, past   unsafe.Pointer
	pageAt, page          unsafe.Pointer
	mask                  unsafe.Pointer
	adapter               unsafe.Pointer
	out                   [device.MaxOut]unsafe.Pointer
	xpageAt, xpage        unsafe.Pointer
	xrows                 unsafe.Pointer
	cellAt, cellFrom      unsafe.Pointer
	cell                  unsafe.Pointer
	best, topK, top       unsafe.Pointer
}

// configHeader mirrors struct ifl_config.
type configHeader struct {
	abi, threads                   int32
	cpus                           unsafe.Pointer
	weights                        unsafe.Pointer
	weightsBytes                   int64
	state                          unsafe.Pointer
	pages, cells                   int32
	maxTokens, maxOutRows, maxSeqs int32
	arena                          unsafe.Pointer
	dispatch                       unsafe.Pointer
	comm                           unsafe.Pointer
}
