//go:build unix

package device

import (
	"fmt"
	"syscall"
	"unsafe"
)

// HugePage is the size and alignment of the pages asked for: with 4 KiB pages
// a third of DRAM bandwidth is lost to page walks.
const HugePage = 2 << 20

// A Region is anonymous zeroed memory outside Go's heap, aligned to 2 MiB.
// Pages take real memory when first touched.
type Region struct {
	Bytes  []byte
	mapped []byte // what Munmap wants back
}

// Map reserves n bytes. what names them in the error.
func Map(n int64, what string) (*Region, error) {
	if n < 0 || n > 1<<46 {
		return nil, fmt.Errorf("%s: a size of %d bytes is out of range", what, n)
	}
	if n == 0 {
		n = 1
	}
	// Two more huge pages: one for alignment, one so that the last is whole.
	mapped, err := syscall.Mmap(-1, 0, int(n)+2*HugePage, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE|mapNoReserve)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot map %.1f MB: %w", what, float64(n)/1e6, err)
	}
	skip := int(-uintptr(unsafe.Pointer(&mapped[0])) & (HugePage - 1))
	r := &Region{Bytes: mapped[skip : skip+int(n) : skip+int(n)], mapped: mapped}
	// A last page that would not be nearly full is not worth a huge one.
	if huge := (int(n) + HugePage/8) / HugePage * HugePage; huge > 0 {
		adviseHuge(mapped[skip : skip+huge])
	}
	return r, nil
}

// SmallPages asks for ordinary pages where none has been touched yet: for what
// is mostly left untouched, and for measuring what huge ones gain.
func (r *Region) SmallPages() { adviseSmall(r.mapped) }

// Free gives the memory back; the region's bytes must not be used after.
func (r *Region) Free() {
	if r != nil && r.mapped != nil {
		syscall.Munmap(r.mapped)
		r.mapped, r.Bytes = nil, nil
	}
}
