//go:build !linux && !darwin

package toolchain

import (
	"context"
	"os"
	"time"
)

// A fileID identifies a file's content; on this system it is the path.
type fileID struct{ path string }

// stat returns the properties of a file that eviction needs.
func stat(path string) (id fileID, links uint64, size int64, used time.Time, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return fileID{}, 0, 0, time.Time{}, err
	}
	return fileID{path}, 1, info.Size(), info.ModTime(), nil
}

func diskBytes(string) int64 { return 0 }

// DiskFree is not implemented on this system.
func DiskFree(string) int64 { return 0 }

// A cacheLock does nothing on systems without supported locks; there nothing is
// evicted.
type cacheLock struct{}

func takeTurn(context.Context, string) (*cacheLock, error) { return &cacheLock{}, nil }

func openLock(string) (*cacheLock, error) { return &cacheLock{}, nil }
func (*cacheLock) exclusive() bool        { return false }
func (*cacheLock) share() error           { return nil }
func (*cacheLock) close()                 {}
