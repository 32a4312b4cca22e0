//go:build !linux

package toolchain

import (
	"errors"
	"io/fs"
)

// clone fails: this system has no such copies.
func clone(string, string, fs.FileMode) error { return errors.ErrUnsupported }
