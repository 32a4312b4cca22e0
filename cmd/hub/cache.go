package hub

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// blob returns the path of a file's content in the cache.
func (c *Client) blob(r Ref, f File) string {
	return filepath.Join(c.Cache, r.folder(), "blobs", f.hash())
}

// snapshot returns the folder of a commit.
func (c *Client) snapshot(r Ref, commit string) string {
	return filepath.Join(c.Cache, r.folder(), "snapshots", commit)
}

// have reports whether a file is complete in the cache. Its name is its hash,
// which was checked at the download.
func (c *Client) have(r Ref, f File) bool {
	info, err := os.Stat(c.blob(r, f))
	return err == nil && info.Mode().IsRegular() && info.Size() == f.Size
}

// written counts the temporary files of this process.
var written atomic.Int64

// freshName returns a name beside path that no other process and no other
// download of this process uses.
func freshName(path string) string {
	return fmt.Sprintf("%s.%d.%d.new", path, os.Getpid(), written.Add(1))
}

// link adds the snapshot's entry for a file: a relative link, as the hub's
// Python client makes it.
func (c *Client) link(l *Listing, f File) error {
	path := filepath.Join(c.snapshot(l.Ref, l.Commit), filepath.FromSlash(f.Name))
	target, err := filepath.Rel(filepath.Dir(path), c.blob(l.Ref, f))
	if err != nil {
		return err
	}
	if found, err := os.Readlink(path); err == nil && found == target {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	fresh := freshName(path)
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// remember records the commit of a branch or tag, so that the model can be
// found offline.
func (c *Client) remember(l *Listing) error {
	if l.Ref.Revision == l.Commit {
		return nil
	}
	path := filepath.Join(c.Cache, l.Ref.folder(), "refs", filepath.FromSlash(l.Ref.Revision))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	fresh := freshName(path)
	if err := os.WriteFile(fresh, []byte(l.Commit), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// Cached returns the folder of a model in the cache, without network access.
func (c *Client) Cached(r Ref) (string, bool) {
	commit := r.Revision
	if !commitForm.MatchString(commit) {
		data, err := os.ReadFile(filepath.Join(c.Cache, r.folder(), "refs", filepath.FromSlash(r.Revision)))
		if err != nil {
			return "", false
		}
		commit = strings.TrimSpace(string(data))
	}
	if !commitForm.MatchString(commit) {
		return "", false
	}
	dir := c.snapshot(r, commit)
	info, err := os.Stat(dir)
	return dir, err == nil && info.IsDir()
}

// lock gives this process exclusive access to a blob. It ends with the process.
func (c *Client) lock(ctx context.Context, r Ref, f File) (unlock func(), err error) {
	path := filepath.Join(c.Cache, ".locks", r.folder(), f.hash()+".lock")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	told := false
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			file.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if !told {
			told = true
			c.notice("%s is being fetched already; waiting for it", f.Name)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// room checks that the missing files fit on the disk.
func (c *Client) room(need int64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(c.Cache, &s); err != nil {
		return nil // unknown: a write will fail instead
	}
	if free := int64(s.Bavail) * int64(s.Bsize); need > free {
		return fmt.Errorf("%s: %d MB are needed and %d MB free; set HF_HOME to a larger disk", c.Cache, need>>20, free>>20)
	}
	return nil
}
