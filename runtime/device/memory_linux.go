package device

import "syscall"

const mapNoReserve = syscall.MAP_NORESERVE

// adviseHuge asks for huge pages. A kernel without them refuses, and the
// memory works as before, slower.
func adviseHuge(b []byte) { _ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) }

func adviseSmall(b []byte) { _ = syscall.Madvise(b, syscall.MADV_NOHUGEPAGE) }
