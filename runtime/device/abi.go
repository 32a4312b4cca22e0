// Package device brings a compiled model into the process: it picks the library
// for this processor, maps the memory that C works on, and makes the one call
// a step. Everything here mirrors templates/include/ifl_step.h; a test compares
// the layouts with a C compiler's.
package device

import "unsafe"

// The constants of the step ABI.
const (
	ABI          = 4   // IFL_ABI
	MaxOut       = 8   // IFL_MAX_OUT
	DispatchRows = 513 // IFL_ROWS
	PageRows     = 64  // rows of a state page
)

// stepHeader is struct ifl_step. Its pointers lead into the slab, never into
// Go's heap.
type stepHeader struct {
	abi, entry           int32
	tokens, wanted, seqs int32
	maskWords            int32
	id, pos, seq, slot   unsafe.Pointer
	types                unsafe.Pointer
	want, first, past    unsafe.Pointer
	pageAt, page         unsafe.Pointer
	mask                 unsafe.Pointer
	adapter              unsafe.Pointer
	out                  [MaxOut]unsafe.Pointer
	xpageAt, xpage       unsafe.Pointer
	xrows                unsafe.Pointer
	best                 unsafe.Pointer
}

// best is struct ifl_best; unsure and none are IFL_UNSURE and IFL_NONE.
type best struct {
	value float32
	at    int32
}

const (
	none   = -1
	unsure = -2
)

// configHeader is struct ifl_config.
type configHeader struct {
	abi, threads                  int32
	cpus                          unsafe.Pointer
	weights                       unsafe.Pointer
	weightsBytes                  int64
	state                         unsafe.Pointer
	pages                         int32
	maxTokens, maxWanted, maxSeqs int32
	arena                         unsafe.Pointer
	dispatch                      unsafe.Pointer
	comm                          unsafe.Pointer
}
