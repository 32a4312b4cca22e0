package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// A Cache is a folder of files named by the hash of their inputs. While it is
// open, no other process removes anything from it.
type Cache struct {
	Dir  string // absolute
	lock *cacheLock
	made atomic.Bool // something was added
}

// OpenCache returns the cache at dir; "" means $IFLOWC_CACHE, else the folder
// iflowc in the user's cache directory. It makes the folder and removes
// leftovers of killed processes. Close it after use.
func OpenCache(dir string) (*Cache, error) {
	dir, err := Dir(dir)
	if err != nil {
		return nil, err
	}
	tmp := filepath.Join(dir, "tmp")
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return nil, fmt.Errorf("build cache: %w; set IFLOWC_CACHE to a folder that can be written", err)
	}
	lock, err := openLock(dir)
	if err != nil {
		return nil, err
	}
	c := &Cache{Dir: dir, lock: lock}
	if lock.exclusive() { // no process is at work there; their age alone would not tell, since the clock may have been set
		for _, path := range c.leftBehind() {
			os.RemoveAll(path)
		}
	}
	if err := lock.share(); err != nil {
		lock.close()
		return nil, fmt.Errorf("build cache %s: another iflowc process keeps it: %w", dir, err)
	}
	return c, nil
}

// Close ends the use of the cache. If something was added, and no other process
// has the cache open, it evicts entries down to the limit.
func (c *Cache) Close() {
	defer c.lock.close()
	if !c.made.Load() {
		return
	}
	if limit, err := c.Bound(); err == nil && limit > 0 {
		_, _ = c.Evict(limit, Never) // the next process to close tries again
	}
}

// Never is longer than any time of disuse.
const Never time.Duration = 1 << 62

// Use marks a file of the cache as used now.
func (*Cache) Use(path string) {
	_ = os.Chtimes(path, time.Now(), time.Time{}) // a read-only cache keeps its times
}

// Dir returns the absolute path of the cache that OpenCache(dir) opens.
func Dir(dir string) (string, error) {
	if dir == "" {
		dir = os.Getenv("IFLOWC_CACHE")
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("build cache: %w; set IFLOWC_CACHE to a folder", err)
		}
		dir = filepath.Join(user, "iflowc")
	}
	return filepath.Abs(dir)
}

// Path returns the path of a kind ("obj", "lib", …), key and extension (".o"),
// whether it exists or not.
func (c *Cache) Path(kind, key, ext string) string {
	return filepath.Join(c.Dir, kind, key[:2], key+ext)
}

// Make returns the path of a cached file, which nobody may write to. If it does not exist,
// or was changed, make writes it at a private path first. After an error nothing is left.
func (c *Cache) Make(kind, key, ext string, make func(dir, out string) error) (string, error) {
	path := c.Path(kind, key, ext)
	if Sealed(path) {
		c.Use(path)
		return path, nil
	}
	c.made.Store(true)
	dir, err := os.MkdirTemp(filepath.Join(c.Dir, "tmp"), kind+"-")
	if err != nil {
		return "", fmt.Errorf("build cache: %w", err)
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "out"+ext)
	if err := make(dir, out); err != nil {
		return "", err
	}
	if err := seal(out, filepath.Base(path)); err != nil {
		return "", fmt.Errorf("build cache: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("build cache: %w", err)
	}
	if err := os.Rename(out, path); err != nil {
		if errors.Is(err, fs.ErrExist) && Sealed(path) {
			return path, nil // on systems whose rename does not replace, the other process's file is the same
		}
		return "", fmt.Errorf("build cache: %w", err)
	}
	return path, nil
}

// FirstAlone runs f. Until a run for the key has succeeded, runs for it, also by other
// processes, take turns.
func (c *Cache) FirstAlone(ctx context.Context, key string, f func() error) error {
	path := c.Path("first", key, "")
	if regular.Has(path) {
		c.Use(path)
		return f()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("build cache: %w", err)
	}
	turn, err := takeTurn(ctx, path+".lock")
	if err != nil {
		return err
	}
	defer turn.close()
	if regular.Has(path) {
		turn.close() // others need not wait for this run
		return f()
	}
	if err := f(); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o644)
}

// Key returns the SHA-256, in hex, of a list of parts and their lengths, so
// that moving a byte between parts changes the key.
func Key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// WriteFile writes data to path through a temporary file beside it, so that a
// reader sees the old file or the new one, never a part.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+strings.TrimPrefix(filepath.Base(path), ".")+".tmp-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.Rename(tmp.Name(), path)
}
