package device

import "syscall"

const mapNoReserve = syscall.MAP_NORESERVE

// adviseHuge requests huge pages. Kernels without them return an error, which is
// ignored: the memory still works, only slower.
func adviseHuge(b []byte) { _ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) }

func adviseSmall(b []byte) { _ = syscall.Madvise(b, syscall.MADV_NOHUGEPAGE) }
