package toolchain

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// clone makes a copy that shares its blocks with the original, where the file system has
// such copies.
func clone(from, to string, mode fs.FileMode) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer dst.Close()
	return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd()))
}
