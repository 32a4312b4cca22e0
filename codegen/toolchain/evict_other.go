//go:build !linux && !darwin

package toolchain

import (
	"os"
	"time"
)

// A fileID names a file's content; here its path does.
type fileID struct{ path string }

// stat says of a file what eviction wants to know.
func stat(path string) (id fileID, links uint64, size int64, used time.Time, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return fileID{}, 0, 0, time.Time{}, err
	}
	return fileID{path}, 1, info.Size(), info.ModTime(), nil
}

func diskBytes(string) int64 { return 0 }

// DiskFree is not known on this system.
func DiskFree(string) int64 { return 0 }

// A cacheLock is nothing on systems whose locks are not used: there nothing is
// evicted.
type cacheLock struct{}

func openLock(string) (*cacheLock, error) { return &cacheLock{}, nil }
func (*cacheLock) exclusive() bool        { return false }
func (*cacheLock) share() error           { return nil }
func (*cacheLock) close()                 {}
