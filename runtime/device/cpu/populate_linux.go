package cpu

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// madvPopulateWrite is MADV_POPULATE_WRITE (Linux 5.14). Older kernels return an error
// and allocate memory when it is first touched.
const madvPopulateWrite = 23

// populate allocates physical memory for the system pages that contain b.
func populate(b []byte) {
	if len(b) == 0 {
		return
	}
	skip := uintptr(unsafe.Pointer(&b[0])) & uintptr(os.Getpagesize()-1)
	start := unsafe.Add(unsafe.Pointer(&b[0]), -int(skip))
	syscall.Syscall(syscall.SYS_MADVISE, uintptr(start), uintptr(len(b))+skip, madvPopulateWrite)
}

// niceness is the niceness of background threads.
const niceness = 10

// background locks the calling goroutine to a thread for the rest of its life and
// lowers the thread's priority: it gets about a tenth of a core that a worker thread
// also uses.
func background() {
	runtime.LockOSThread()
	syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), niceness)
}
