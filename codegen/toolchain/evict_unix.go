//go:build linux || darwin

package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A fileID identifies a file's content among all files of a machine.
type fileID struct{ device, inode uint64 }

// stat returns the properties of a file that eviction needs. Its last use is the later
// of its access time, which Make sets, and its modification time.
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

// diskBytes returns the size of a folder's file system; 0 if it is unknown.
func diskBytes(dir string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Blocks) * int64(s.Bsize)
}

// DiskFree returns the free space in bytes for unprivileged users on a folder's file
// system; 0 if it is unknown.
func DiskFree(dir string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Bavail) * int64(s.Bsize)
}

// A cacheLock is a file lock: shared by the processes that have the cache open, and
// exclusive during eviction. The system releases it when a process ends.
type cacheLock struct{ file *os.File }

// lockWait is the maximum wait for another process's eviction.
const lockWait = 30 * time.Second

// openLock acquires the shared lock of a cache. On a file system without locks it
// returns an empty lock, with which nothing is evicted.
func openLock(dir string) (*cacheLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return &cacheLock{}, nil // a read-only cache
	}
	l := &cacheLock{f}
	err = l.share()
	if err == nil {
		return l, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("build cache %s: another iflowc process has been evicting entries for %v; end that process, or set IFLOWC_CACHE to another folder", dir, lockWait)
	}
	return &cacheLock{}, nil
}

// takeTurn acquires the exclusive lock of a file and waits for it as long as ctx lasts. On
// a file system without locks nobody waits.
func takeTurn(ctx context.Context, path string) (*cacheLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return &cacheLock{}, nil
	}
	l := &cacheLock{f}
	if errors.Is(l.wait(ctx, unix.LOCK_EX), unix.EWOULDBLOCK) {
		l.close()
		return nil, ctx.Err()
	}
	return l, nil
}

// exclusive upgrades the lock to exclusive, if no other process shares it.
func (l *cacheLock) exclusive() bool {
	return l.file != nil && l.flock(unix.LOCK_EX|unix.LOCK_NB) == nil
}

// share acquires the shared lock or downgrades the exclusive lock. It waits for an
// evicting process for at most lockWait, because that process may be stopped.
func (l *cacheLock) share() error {
	if l.file == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	return l.wait(ctx, unix.LOCK_SH)
}

// wait acquires the lock, LOCK_SH or LOCK_EX. It returns EWOULDBLOCK if ctx ends while other
// processes hold it.
func (l *cacheLock) wait(ctx context.Context, how int) error {
	for {
		err := l.flock(how | unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
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

// close releases the lock. Closing the file is not enough: a process that is being started
// at the same time holds a copy of it, and with it the lock, until its program runs.
func (l *cacheLock) close() {
	if l.file != nil {
		_ = l.flock(unix.LOCK_UN)
		l.file.Close()
	}
}
