package ptx

import (
	"fmt"
	"unsafe"
)

// Generic addresses: global memory is that of the program; shared and local
// memory are in address windows that no program uses.
const (
	sharedWindow = 1 << 60
	localWindow  = 1 << 61
	windowMask   = 1<<60 - 1
)

// A thread is a thread of a block.
type thread struct {
	block  *block
	lane   int // of its warp
	warp   *warp
	index  [3]uint32
	frame  *frame
	cc     uint64 // carry
	args   [4]uint64
	done   bool
	waited bool     // griddepcontrol.wait has run
	waits  *meeting // collective op that it waits for, or nil
	bar    int      // barrier that it waits at, or -1
	groups [][]copy16
	fresh  []copy16    // cp.async since the last commit
	phase  func() bool // whether the mbarrier phase that it waits for has completed, or nil
}

// A frame is a function that is being executed.
type frame struct {
	f      *function
	pc     int
	reg    []uint64
	param  []byte
	local  []byte
	caller *frame
	back   func() // returns results to the caller
}

type copy16 struct {
	to, from []byte
}

// A warp is 32 threads.
type warp struct {
	lanes   []*thread
	fenced  bool                  // wgmma.fence has run
	open    []*wgmma              // since the last commit
	groups  [][]*wgmma            // committed
	results [32]map[uint64]uint64 // by token
	tokens  uint64
	count   int // of wgmma
}

// A block has the shared memory.
type block struct {
	memory  Memory
	early   bool // other kernels may be running
	id      [3]uint32
	size    [3]uint32
	grid    [3]uint32
	shared  []byte
	threads []*thread
	warps   []*warp
	dynamic int // start of the launch's dynamic shared memory

	proxy    []byte            // shared memory as the async proxy sees it
	phases   map[uint64]*phase // of mbarriers, by address
	unfenced bool              // an mbarrier was initialized since the last proxy fence
	bulks    []bulk
}

// Memory returns the bytes at an address of global memory.
type Memory interface {
	At(address uint64, size int) ([]byte, error)
}

// Written is implemented by a Memory that records which of its allocations kernels
// write. Kernels that start early must not touch these before they wait.
type Written interface {
	Wrote(address uint64)
	Written(address uint64) bool
}

// writable returns the bytes of an access that writes. It records writes of global
// memory, which must not come before the wait.
func (t *thread) writable(space string, address uint64, size int) ([]byte, error) {
	if space == "global" || space == "" && address&(sharedWindow|localWindow) == 0 {
		if t.block.early && !t.waited {
			return nil, fmt.Errorf("address %#x is written before griddepcontrol.wait", address)
		}
		if w, ok := t.block.memory.(Written); ok {
			w.Wrote(address)
		}
	}
	return t.bytes(space, address, size)
}

// bytes returns the bytes of an access to a state space; "" is the generic one.
func (t *thread) bytes(space string, address uint64, size int) ([]byte, error) {
	if address%uint64(size) != 0 {
		return nil, fmt.Errorf("address %#x is not aligned to %d bytes", address, size)
	}
	var in []byte
	switch {
	case space == "shared" || space == "" && address&sharedWindow != 0:
		in, address = t.block.shared, address&windowMask
	case space == "local" || space == "" && address&localWindow != 0:
		in, address = t.frame.local, address&windowMask
	case space == "param":
		in = t.frame.param
	default:
		if w, ok := t.block.memory.(Written); ok && t.block.early && !t.waited && w.Written(address) {
			return nil, fmt.Errorf("address %#x is accessed before griddepcontrol.wait, and kernels write there", address)
		}
		return t.block.memory.At(address, size)
	}
	if address+uint64(size) > uint64(len(in)) {
		return nil, fmt.Errorf("%d bytes at %#x of %s memory, which has %d", size, address, space, len(in))
	}
	return in[address:][:size], nil
}

// load reads a number of n bytes.
func load(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(*(*uint16)(unsafe.Pointer(&b[0])))
	case 4:
		return uint64(*(*uint32)(unsafe.Pointer(&b[0])))
	}
	return *(*uint64)(unsafe.Pointer(&b[0]))
}

func store(b []byte, v uint64) {
	switch len(b) {
	case 1:
		b[0] = byte(v)
	case 2:
		*(*uint16)(unsafe.Pointer(&b[0])) = uint16(v)
	case 4:
		*(*uint32)(unsafe.Pointer(&b[0])) = uint32(v)
	default:
		*(*uint64)(unsafe.Pointer(&b[0])) = v
	}
}
