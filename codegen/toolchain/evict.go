package toolchain

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/kit/bytesize"
)

// The kinds of cache entries that can be rebuilt: kinds with files in folders of two
// digits, as created by Make, and kinds with folders. Anything else, such as downloaded
// models, is never removed.
var (
	fileKinds   = []string{"bin", "calibration", "fatbin", "first", "lib", "obj", "sensitivity", "weights"}
	folderKinds = []string{"run"}
)

// Bounds of a cache unless $IFLOWC_CACHE_SIZE says otherwise: a tenth of the
// disk, between these.
const (
	leastBound = 2e9
	mostBound  = 20e9
)

// grace is the time after its last use for which an entry counts as in use, because a
// program may have its path and be about to open it.
const grace = 10 * time.Minute

// staleAfter is the age at which a private file or folder counts as left behind by a crash,
// for a process with exclusive access to the cache.
const staleAfter = time.Hour

// A Usage is the disk space of the cache entries that can be rebuilt.
type Usage struct {
	Bytes int64
	Kinds map[string]int64 // the same by kind; a file with several names counts for the first one
}

// An entry is a file or folder that is removed as a whole.
type entry struct {
	path  string
	used  time.Time
	files []*inode
}

// An inode is a file's content, which may have several names.
type inode struct {
	kind  string
	size  int64
	links uint64 // number of names
}

// Bound returns the maximum size of the cache in bytes, from $IFLOWC_CACHE_SIZE or the
// size of the disk; 0 means unlimited.
func (c *Cache) Bound() (int64, error) {
	if text := os.Getenv("IFLOWC_CACHE_SIZE"); text != "" {
		n, err := bytesize.Parse(text)
		if err != nil {
			return 0, fmt.Errorf("IFLOWC_CACHE_SIZE: %w", err)
		}
		return n, nil
	}
	return min(max(diskBytes(c.Dir)/10, leastBound), mostBound), nil
}

// Usage measures the cache.
func (c *Cache) Usage() (Usage, error) {
	_, u, err := c.scan()
	return u, err
}

// Evict removes the entries that were not used for the given time, and then the least
// recently used entries until at most limit bytes are left. A negative limit means
// unlimited. It returns the number of bytes freed. It returns an error if another
// process has the cache open.
func (c *Cache) Evict(limit int64, unused time.Duration) (int64, error) {
	if !c.lock.exclusive() {
		_ = c.lock.share() // downgrade the lock, so that other processes can open the cache
		return 0, fmt.Errorf("build cache %s: another iflowc process uses it; try again after it has exited", c.Dir)
	}
	bin, freed, err := c.condemn(limit, unused)
	_ = c.lock.share()
	if bin != "" { // nothing uses the moved entries any more; removal is slow and needs no lock
		if e := os.RemoveAll(bin); err == nil {
			err = e
		}
	}
	return freed, err
}

// condemn moves the entries to remove to a separate folder. The caller must hold the
// exclusive lock.
func (c *Cache) condemn(limit int64, unused time.Duration) (bin string, freed int64, err error) {
	entries, usage, err := c.scan()
	if err != nil {
		return "", 0, err
	}
	bin, err = os.MkdirTemp(filepath.Join(c.Dir, "tmp"), "evicted-")
	if err != nil {
		return "", 0, fmt.Errorf("build cache: %w", err)
	}
	moved := 0
	move := func(path string) error {
		moved++
		return os.Rename(path, filepath.Join(bin, strconv.Itoa(moved)))
	}
	for _, path := range c.leftBehind() {
		if err := move(path); err != nil {
			return bin, freed, fmt.Errorf("build cache: %w", err)
		}
	}
	slices.SortStableFunc(entries, func(a, b *entry) int { return a.used.Compare(b.used) })
	now := time.Now()
	for _, e := range entries {
		age := now.Sub(e.used)
		// Age is negative if the clock was set back since the last use.
		if age.Abs() < min(unused, grace) || (limit < 0 || usage.Bytes-freed <= limit) && age < unused {
			continue
		}
		if err := move(e.path); err != nil {
			return bin, freed, fmt.Errorf("build cache: %w", err)
		}
		for _, n := range e.files {
			n.links--
			if n.links == 0 {
				freed += n.size
			}
		}
	}
	return bin, freed, nil
}

// leftBehind lists the leftovers of killed processes: private folders, and libraries
// that a binary was about to load.
func (c *Cache) leftBehind() (paths []string) {
	for _, pattern := range []string{"tmp/*", "model-*.so"} {
		list, _ := filepath.Glob(filepath.Join(c.Dir, pattern))
		for _, path := range list {
			if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > staleAfter {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// scan lists the entries and sums them up.
func (c *Cache) scan() ([]*entry, Usage, error) {
	var entries []*entry
	usage := Usage{Kinds: map[string]int64{}}
	inodes := map[fileID]*inode{}
	for _, kind := range fileKinds {
		files, _ := filepath.Glob(filepath.Join(c.Dir, kind, "??", "*"))
		for _, path := range files {
			entries = append(entries, &entry{path: path})
		}
	}
	for _, kind := range folderKinds {
		folders, _ := filepath.Glob(filepath.Join(c.Dir, kind, "*"))
		for _, path := range folders {
			entries = append(entries, &entry{path: path})
		}
	}
	for _, e := range entries {
		kind, _, _ := strings.Cut(strings.TrimPrefix(e.path, c.Dir+string(filepath.Separator)), string(filepath.Separator))
		if err := e.measure(inodes, kind); err != nil {
			return nil, usage, fmt.Errorf("build cache: %w", err)
		}
	}
	for _, n := range inodes {
		usage.Bytes += n.size
		usage.Kinds[n.kind] += n.size
	}
	return entries, usage, nil
}

// measure finds the files of an entry and the time of their last use.
func (e *entry) measure(inodes map[fileID]*inode, kind string) error {
	return filepath.WalkDir(e.path, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = e.add(path, d, inodes, kind)
		}
		if os.IsNotExist(err) {
			return nil // another process has removed it
		}
		return err
	})
}

// add adds a file or folder to the entry.
func (e *entry) add(path string, d fs.DirEntry, inodes map[fileID]*inode, kind string) error {
	if d.IsDir() { // reading a folder is not a use of it
		info, err := d.Info()
		if err == nil && info.ModTime().After(e.used) {
			e.used = info.ModTime()
		}
		return err
	}
	id, links, size, used, err := stat(path)
	if err != nil {
		return err
	}
	if used.After(e.used) {
		e.used = used
	}
	n := inodes[id]
	if n == nil {
		n = &inode{kind: kind, size: size, links: links}
		inodes[id] = n
	}
	e.files = append(e.files, n)
	return nil
}
