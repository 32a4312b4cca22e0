package toolchain

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestMakeAgain: a cached file that was written to, cut or replaced is made again.
func TestMakeAgain(t *testing.T) {
	t.Parallel()
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	made := 0
	get := func() string {
		path, err := c.Make("bin", "aa11", ".x", func(_, out string) error {
			made++
			return os.WriteFile(out, []byte("right"), 0o755)
		})
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := get()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for name, spoil := range map[string]func() error{
		"written to": func() error { return os.WriteFile(path, []byte("wrong"), 0o755) },
		"cut":        func() error { return os.Truncate(path, 3) },
		"replaced":   func() error { os.Remove(path); return os.WriteFile(path, []byte("right"), 0o555) },
		"touched":    func() error { return os.Chtimes(path, time.Now(), time.Now()) },
		"writable":   func() error { return os.Chmod(path, 0o755) },
	} {
		before := made
		if get(); made != before {
			t.Errorf("%s: made again before", name)
		}
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		get()
		if data, err := os.ReadFile(path); err != nil || string(data) != "right" || made != before+1 {
			t.Errorf("%s: %q, made %d times, %v", name, data, made-before, err)
		}
	}
}

// TestExport: a file outside of the cache owns its contents. It is the cached file itself
// only if nothing else uses that.
func TestExport(t *testing.T) {
	t.Parallel()
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	needLocks(t, c)
	get := func() string {
		path, err := c.Make("weights", "aa11", ".x", func(_, out string) error { return os.WriteFile(out, []byte("data"), 0o644) })
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	second := filepath.Join(c.Dir, "second")
	for _, use := range []struct {
		name string
		move bool
		more func(path string) (end func()) // another use
		gone bool                           // the cached file is, unless copies share blocks
	}{
		{"copied", false, nil, false},
		{"in use", true, func(path string) func() {
			if err := os.Link(path, second); err != nil {
				t.Skip("needs links: ", err)
			}
			return func() { os.Remove(second) }
		}, false},
		{"open elsewhere", true, func(string) func() {
			other, err := OpenCache(c.Dir)
			if err != nil {
				t.Fatal(err)
			}
			return other.Close
		}, false},
		{"moved", true, nil, true},
	} {
		path, to := get(), filepath.Join(t.TempDir(), "out")
		end := func() {}
		if use.more != nil {
			end = use.more(path)
		}
		if err := c.Export(path, to, 0o640, use.move); err != nil {
			t.Fatal(err)
		}
		end()
		mine(t, to)
		shares := newFile(to, to+".clone", 0o600, clone) == nil
		if Sealed(path) == (use.gone && !shares) {
			t.Errorf("%s: the cached file is there: %t", use.name, Sealed(path))
		}
	}
}

// mine checks that a file has one name, its own mode and the right contents.
func mine(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	_, links, _, _, err := stat(path)
	if data, errRead := os.ReadFile(path); err != nil || errRead != nil || string(data) != "data" || links != 1 || info.Mode().Perm() != 0o640 || time.Since(info.ModTime()) > time.Minute {
		t.Errorf("%s: %q, %v, %d names, %v", path, data, info.Mode(), links, info.ModTime())
	}
}
