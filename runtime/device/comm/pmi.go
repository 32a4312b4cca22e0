//go:build unix

package comm

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// speaksPMI1 reports whether an MPICH library speaks version 1 of PMI, the default of its
// build: its version text lists the build's options.
func speaksPMI1(library uintptr) bool {
	version, err := purego.Dlsym(library, "MPI_Get_library_version")
	if err != nil {
		return false
	}
	text := make([]byte, 1<<13) // MPI_MAX_LIBRARY_VERSION_STRING
	var n int32
	purego.SyscallN(version, uintptr(unsafe.Pointer(unsafe.SliceData(text))), uintptr(unsafe.Pointer(&n)))
	text = text[:max(0, min(int(n), len(text)))]
	return n > 0 && !bytes.Contains(text, []byte("pmi2")) && !bytes.Contains(text, []byte("pmix"))
}

// finalizePMI tells the launcher that this process ends in order, and waits for the
// answer: the command finalize of the PMI-1 wire protocol, which MPICH's processes speak
// with their launcher over the file descriptor in $PMI_FD. Without it, the launcher would
// take the end of the process for a failure.
func finalizePMI(descriptor string) error {
	fd, err := strconv.Atoi(descriptor)
	if err != nil || fd < 0 {
		return fmt.Errorf("PMI_FD=%q is no file descriptor", descriptor)
	}
	if _, err := unix.Write(fd, []byte("cmd=finalize\n")); err != nil {
		return os.NewSyscallError("write", err)
	}
	var answer []byte
	for end := time.Now().Add(finalizeLimit); time.Now().Before(end); {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(ready, 100); n == 0 || err != nil { // err: a signal
			continue
		}
		var data [256]byte
		n, err := unix.Read(fd, data[:])
		answer = append(answer, data[:max(n, 0)]...)
		if n <= 0 || bytes.ContainsRune(answer, '\n') {
			if !bytes.Contains(answer, []byte("cmd=finalize_ack")) {
				return fmt.Errorf("the launcher answers %q (%v)", answer, err)
			}
			return nil
		}
	}
	return fmt.Errorf("the launcher has not answered within %v", finalizeLimit)
}
