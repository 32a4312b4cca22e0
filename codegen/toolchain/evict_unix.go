//go:build linux || darwin

package toolchain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A fileID names a file's content among all files of a machine.
type fileID struct{ device, inode uint64 }

// stat says of a file what eviction wants to know. Its last use is the time of
// its last access, which Make sets, or of its last change.
func stat(path string) (id fileID, links uint64, size int64, used time.Time, err error) {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil {
		return fileID{}, 0, 0, time.Time{}, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	used = time.Unix(s.Atim.Unix())
	if changed := time.Unix(s.Mtim.Unix()); changed.After(used) {
		used = changed
	}
	return fileID{uint64(s.Dev), s.Ino}, uint64(s.Nlink), s.Size, used, nil
}

// diskBytes is the size of the file system that holds a folder; 0 when that
// cannot be known.
func diskBytes(dir string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Blocks) * int64(s.Bsize)
}

// DiskFree is how many bytes a user may still write on the file system that
// holds a folder; 0 when that cannot be known.
func DiskFree(dir string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Bavail) * int64(s.Bsize)
}

// A cacheLock is shared by those who have the cache open, and held by one alone
// while it evicts. The system lets go of it when a process ends, however it does.
type cacheLock struct{ file *os.File }

// lockWait is how long to wait for another process to have evicted.
const lockWait = 30 * time.Second

// openLock takes part in the lock of a cache. A file system without locks gives
// an empty one, with which nothing is evicted.
func openLock(dir string) (*cacheLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return &cacheLock{}, nil // a cache that is only read
	}
	l := &cacheLock{f}
	err = l.share()
	if err == nil {
		return l, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("build cache %s: another iflowc has been removing things from it for %v; end that process, or set IFLOWC_CACHE to another folder", dir, lockWait)
	}
	return &cacheLock{}, nil
}

// exclusive takes the lock alone, if nobody else shares it.
func (l *cacheLock) exclusive() bool {
	return l.file != nil && l.flock(unix.LOCK_EX|unix.LOCK_NB) == nil
}

// share takes part in the lock, or goes back to sharing it. It waits for the one
// who evicts, but not for ever: that process may have been stopped.
func (l *cacheLock) share() error {
	if l.file == nil {
		return nil
	}
	for deadline := time.Now().Add(lockWait); ; time.Sleep(5 * time.Millisecond) {
		err := l.flock(unix.LOCK_SH | unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
	}
}

func (l *cacheLock) flock(how int) error {
	for {
		if err := unix.Flock(int(l.file.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}

func (l *cacheLock) close() {
	if l.file != nil {
		l.file.Close()
	}
}
