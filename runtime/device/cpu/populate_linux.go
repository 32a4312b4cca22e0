package cpu

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// madvPopulateWrite is MADV_POPULATE_WRITE, of Linux 5.14 and later; earlier
// ones refuse it, and memory is taken when it is first touched.
const madvPopulateWrite = 23

// populate takes real memory for the system pages in which b lies.
func populate(b []byte) {
	if len(b) == 0 {
		return
	}
	skip := uintptr(unsafe.Pointer(&b[0])) & uintptr(os.Getpagesize()-1)
	start := unsafe.Add(unsafe.Pointer(&b[0]), -int(skip))
	syscall.Syscall(syscall.SYS_MADVISE, uintptr(start), uintptr(len(b))+skip, madvPopulateWrite)
}

// niceness is that of background threads.
const niceness = 10

// background gives the calling goroutine a thread of its own, to its end, that
// gets a tenth of what a working one does where both want the same processor.
func background() {
	runtime.LockOSThread()
	syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), niceness)
}
