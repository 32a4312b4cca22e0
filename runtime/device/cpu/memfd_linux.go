package cpu

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// memfdCreate is the number of the memfd_create system call, which package syscall
// lacks.
var memfdCreate = map[string]uintptr{"amd64": 319, "arm64": 279}

// loadMemory loads a library from a memory file. Its descriptor stays open for the life
// of the process, so that no other library gets the same name.
func loadMemory(data string) (uintptr, error) {
	number, ok := memfdCreate[runtime.GOARCH]
	if !ok {
		return 0, syscall.ENOSYS
	}
	name := []byte("model\x00")
	const closeOnExec = 1
	fd, _, errno := syscall.Syscall(number, uintptr(unsafe.Pointer(&name[0])), closeOnExec, 0)
	if errno != 0 {
		return 0, errno
	}
	f := os.NewFile(fd, "model")
	if _, err := f.WriteString(data); err != nil {
		f.Close()
		return 0, err
	}
	handle, err := purego.Dlopen(fmt.Sprintf("/proc/self/fd/%d", fd), purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		f.Close()
		return 0, err
	}
	keepOpen = append(keepOpen, f)
	return handle, nil
}

// keepOpen prevents finalizers from closing the files of loaded libraries.
var keepOpen []*os.File
