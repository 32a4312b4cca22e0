package toolchain

import (
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// seal makes a file read-only and sets its modification time to one that follows from the
// name that it gets in the cache and its size, so that Sealed finds a file that was written
// to later.
func seal(path, name string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := os.Chmod(path, info.Mode().Perm()&^0o222); err != nil {
		return err
	}
	return os.Chtimes(path, time.Now(), sealTime(name, info.Size()))
}

// Sealed reports whether a file of the cache is as seal left it.
func Sealed(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o222 == 0 && info.ModTime().Equal(sealTime(filepath.Base(path), info.Size()))
}

// sealTime returns a time between 1986 and 2017, in even seconds: some file systems store
// no others.
func sealTime(name string, size int64) time.Time {
	h := fnv.New64a()
	h.Write([]byte(name + " " + strconv.FormatInt(size, 10)))
	return time.Unix(500_000_000+2*int64(h.Sum64()%500_000_000), 0)
}

// Export makes a file with the contents of a cached one. The new file owns them: what
// happens to one later does not change the other. Where the file system shares the blocks
// of copies, it is a copy. Else, with move, it is the cached file itself if nothing else
// uses that and no other process has the cache open; the cache makes it again when it is
// needed.
func (c *Cache) Export(from, to string, mode fs.FileMode, move bool) error {
	if newFile(from, to, mode, clone) == nil {
		return nil
	}
	if move && c.moveOut(from, to) {
		if err := os.Chmod(to, mode); err != nil {
			return err
		}
		return os.Chtimes(to, time.Now(), time.Now())
	}
	return newFile(from, to, mode, copyContents)
}

// moveOut moves a file out of the cache, if it has one name and no other process has the
// cache open.
func (c *Cache) moveOut(from, to string) bool {
	_, links, _, _, err := stat(from)
	if err != nil || links != 1 {
		return false
	}
	defer func() { _ = c.lock.share() }()
	return c.lock.exclusive() && os.Rename(from, to) == nil
}

// newFile makes a new file, which fill fills from another one. After an error there is none.
func newFile(from, to string, mode fs.FileMode, fill func(dst, src *os.File) error) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	err = fill(dst, src)
	if e := dst.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(to)
	}
	return err
}

func copyContents(dst, src *os.File) error {
	_, err := dst.ReadFrom(src)
	return err
}
