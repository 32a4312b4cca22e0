package pack

import (
	"os"

	"golang.org/x/sys/unix"
)

// allocate reserves the space of a file's first n bytes on its disk.
func allocate(f *os.File, n int64) error { return unix.Fallocate(int(f.Fd()), 0, 0, n) }
