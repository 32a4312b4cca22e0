//go:build unix

package device

import (
	"fmt"
	"syscall"
	"unsafe"
)

// HugePage is the size and alignment of huge pages in bytes. With 4 KiB pages, page
// walks cost a third of the DRAM bandwidth.
const HugePage = 2 << 20

// A Region is zeroed anonymous memory outside Go's heap, aligned to 2 MiB. The system
// allocates physical pages when they are first touched.
type Region struct {
	Bytes  []byte
	mapped []byte // the slice to pass to Munmap
}

// Map maps n bytes. Errors begin with what.
func Map(n int64, what string) (*Region, error) {
	if n < 0 || n > 1<<46 {
		return nil, fmt.Errorf("%s: a size of %d bytes is out of range", what, n)
	}
	if n == 0 {
		n = 1
	}
	// Two extra huge pages: one for alignment and one to round the size up.
	mapped, err := syscall.Mmap(-1, 0, int(n)+2*HugePage, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE|mapNoReserve)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot map %.1f MB: %w", what, float64(n)/1e6, err)
	}
	skip := int(-uintptr(unsafe.Pointer(&mapped[0])) & (HugePage - 1))
	r := &Region{Bytes: mapped[skip : skip+int(n) : skip+int(n)], mapped: mapped}
	// Leave out a last huge page that would be mostly empty.
	if huge := (int(n) + HugePage/8) / HugePage * HugePage; huge > 0 {
		adviseHuge(mapped[skip : skip+huge])
	}
	return r, nil
}

// SmallPages requests ordinary pages for memory that has not been touched yet: for
// sparsely used memory, and to measure the gain from huge pages.
func (r *Region) SmallPages() { adviseSmall(r.mapped) }

// Free unmaps the region. Its bytes must not be used afterwards.
func (r *Region) Free() {
	if r != nil && r.mapped != nil {
		syscall.Munmap(r.mapped)
		r.mapped, r.Bytes = nil, nil
	}
}
