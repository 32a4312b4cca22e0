package toolchain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// filled is an open cache with a file of 1000 bytes for each key, of which each
// was last used a day before the next, the last one ten days ago.
func filled(t *testing.T, kind string, keys ...string) *Cache {
	t.Helper()
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for i, key := range keys {
		path, err := c.Make(kind, key, ".x", func(_, out string) error { return os.WriteFile(out, make([]byte, 1000), 0o644) })
		if err != nil {
			t.Fatal(err)
		}
		age(t, path, 9+len(keys)-i)
	}
	c.made.Store(false)
	return c
}

// age makes a file one that was last used some days ago.
func age(t *testing.T, path string, days int) {
	t.Helper()
	when := time.Now().Add(-time.Duration(days) * 24 * time.Hour)
	if err := os.Chtimes(path, when, when); err != nil {
		t.Fatal(err)
	}
}

// held lists the keys of a kind that the cache still has.
func held(c *Cache, kind string) (keys []string) {
	list, _ := filepath.Glob(filepath.Join(c.Dir, kind, "??", "*"))
	for _, path := range list {
		keys = append(keys, strings.TrimSuffix(filepath.Base(path), ".x"))
	}
	return keys
}

func needLocks(t *testing.T, c *Cache) {
	t.Helper()
	if !c.lock.exclusive() {
		t.Skip("needs a file system with locks")
	}
	c.lock.share()
}

func TestEvictOldestFirst(t *testing.T) {
	t.Parallel()
	c := filled(t, "obj", "aa1", "bb2", "cc3", "dd4")
	needLocks(t, c)
	c.Use(c.Path("obj", "aa1", ".x")) // now the youngest
	freed, err := c.Evict(2500, Never)
	if got := held(c, "obj"); err != nil || freed != 2000 || !slices.Equal(got, []string{"aa1", "dd4"}) {
		t.Errorf("freed %d, left %v, %v", freed, got, err)
	}
	if u, err := c.Usage(); err != nil || u.Bytes != 2000 || u.Kinds["obj"] != 2000 {
		t.Errorf("%+v, %v", u, err)
	}
	if freed, err = c.Evict(0, Never); err != nil || freed != 1000 || !slices.Equal(held(c, "obj"), []string{"aa1"}) {
		t.Errorf("what was used just now went: freed %d, %v, %v", freed, held(c, "obj"), err)
	}
	if freed, err = c.Evict(-1, 0); err != nil || freed != 1000 || len(held(c, "obj")) > 0 {
		t.Errorf("all: freed %d, %v, %v", freed, held(c, "obj"), err)
	}
	if left, _ := os.ReadDir(filepath.Join(c.Dir, "tmp")); len(left) > 0 {
		t.Errorf("left in tmp: %v", left)
	}
}

// TestEvictClock: entries from the future do not stay forever, and after the clock
// was set forward, what another process is making stays.
func TestEvictClock(t *testing.T) {
	t.Parallel()
	c := filled(t, "obj", "aa", "bb")
	needLocks(t, c)
	for _, key := range []string{"aa", "bb"} {
		age(t, c.Path("obj", key, ".x"), -365)
	}
	private := filepath.Join(c.Dir, "tmp", "obj-1")
	if err := os.Mkdir(private, 0o755); err != nil {
		t.Fatal(err)
	}
	age(t, private, 365)
	if other, err := OpenCache(c.Dir); err != nil {
		t.Error(err)
	} else if other.Close(); !exists(private) {
		t.Error("what another process is making was removed")
	}
	if freed, err := c.Evict(1000, Never); err != nil || freed != 1000 || len(held(c, "obj")) != 1 {
		t.Errorf("%d bytes freed, %v left (%v)", freed, held(c, "obj"), err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestEvictUnused(t *testing.T) {
	t.Parallel()
	c := filled(t, "weights", "aa1", "bb2", "cc3")
	needLocks(t, c)
	freed, err := c.Evict(-1, 10*24*time.Hour+12*time.Hour)
	if got := held(c, "weights"); err != nil || freed != 2000 || !slices.Equal(got, []string{"cc3"}) {
		t.Errorf("freed %d, left %v, %v", freed, got, err)
	}
}

// TestEvictLinks: a file with several names in the cache takes room there once.
func TestEvictLinks(t *testing.T) {
	t.Parallel()
	c := filled(t, "weights", "aa1", "bb2")
	needLocks(t, c)
	run := filepath.Join(c.Dir, "run", "k")
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(c.Path("weights", "bb2", ".x"), filepath.Join(run, "model.weights")); err != nil {
		t.Skip("needs links between folders: ", err)
	}
	age(t, run, 20)
	if u, err := c.Usage(); err != nil || u.Bytes != 2000 {
		t.Errorf("%+v, %v", u, err)
	}
	freed, err := c.Evict(1000, Never)
	if got := held(c, "weights"); err != nil || freed != 1000 || len(got) != 1 {
		t.Errorf("freed %d, left %v, %v", freed, got, err)
	}
}

// TestEvictKeeps: models that were fetched stay; what killed processes left
// goes, but not at once.
func TestEvictKeeps(t *testing.T) {
	t.Parallel()
	c := filled(t, "obj", "aa1")
	needLocks(t, c)
	model, old, fresh, stray := filepath.Join(c.Dir, "models", "smollm2", "model.gguf"), filepath.Join(c.Dir, "tmp", "obj-1"), filepath.Join(c.Dir, "tmp", "obj-2"), filepath.Join(c.Dir, "model-1.so")
	for _, path := range []string{model, filepath.Join(old, "x"), filepath.Join(fresh, "x"), stray} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{model, old, stray} {
		age(t, path, 30)
	}
	if _, err := c.Evict(-1, 0); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{model: true, filepath.Join(fresh, "x"): true, filepath.Join(old, "x"): false, stray: false} {
		if regular.Has(path) != want {
			t.Errorf("%s there: %t", path, !want)
		}
	}
}

// TestCloseKeepsBound: closing brings a cache to which something was added back
// to its bound.
func TestCloseKeepsBound(t *testing.T) {
	t.Setenv("IFLOWC_CACHE_SIZE", "1.5K")
	c := filled(t, "obj", "aa1", "bb2", "cc3")
	needLocks(t, c)
	c.Close()
	if len(held(c, "obj")) != 3 {
		t.Errorf("nothing was added, left %v", held(c, "obj"))
	}
	c, err := OpenCache(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	c.made.Store(true)
	c.Close()
	if got := held(c, "obj"); !slices.Equal(got, []string{"cc3"}) {
		t.Errorf("left %v", got)
	}
}
