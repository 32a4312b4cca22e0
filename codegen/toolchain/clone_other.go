//go:build !linux

package toolchain

import (
	"errors"
	"os"
)

// clone fails: this system has no such copies.
func clone(_, _ *os.File) error { return errors.ErrUnsupported }
