package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// newBuilder gives a builder with an empty cache.
func newBuilder(t *testing.T) *Builder {
	t.Helper()
	cc, err := FindCompiler(t.Context(), "")
	if err != nil {
		t.Skipf("no C compiler: %v", err)
	}
	cache, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Builder{Cache: cache, CC: cc, Jobs: 2}
}

func unit(i int) Unit {
	return Unit{
		Name:    fmt.Sprintf("u%d.c", i),
		Source:  fmt.Appendf(nil, "#include \"sub/v.h\"\nint f%d(void) { return V + %d; }\n", i, i),
		Headers: map[string][]byte{"sub/v.h": []byte("#define V 40\n")},
		Flags:   []string{"-O1", "-fPIC"},
	}
}

// leftovers lists what the cache's private directories still hold.
func leftovers(t *testing.T, c *Cache) []os.DirEntry {
	t.Helper()
	left, err := os.ReadDir(filepath.Join(c.Dir, "tmp"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func TestObjectsAndShared(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	units := []Unit{unit(0), unit(1), unit(2)}
	objects, err := b.Objects(t.Context(), units)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := b.Shared(t.Context(), objects, nil)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(lib)
	if err != nil || before.Size() == 0 {
		t.Fatalf("library: %v", err)
	}
	again, err := b.Objects(t.Context(), units)
	if err != nil {
		t.Fatal(err)
	}
	for i := range again {
		if again[i] != objects[i] {
			t.Errorf("unit %d: object moved from %s to %s", i, objects[i], again[i])
		}
	}
	changed := unit(1)
	changed.Headers = map[string][]byte{"sub/v.h": []byte("#define V 41\n")}
	third, err := b.Objects(t.Context(), []Unit{units[0], changed})
	if err != nil {
		t.Fatal(err)
	}
	if third[0] != objects[0] || third[1] == objects[1] {
		t.Error("a changed header must recompile its unit and no other")
	}
	if left := leftovers(t, b.Cache); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestSameBytes compiles one unit in two caches: the object does not depend
// on where the cache lies.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	var bytes [2]string
	for i := range bytes {
		b := newBuilder(t)
		objects, err := b.Objects(t.Context(), []Unit{unit(7)})
		if err != nil {
			t.Fatal(err)
		}
		lib, err := b.Shared(t.Context(), objects, nil)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(lib)
		if err != nil {
			t.Fatal(err)
		}
		bytes[i] = string(data)
	}
	if bytes[0] != bytes[1] {
		t.Error("the same unit gave two different libraries")
	}
}

func TestConcurrentCompiles(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	units := []Unit{unit(0), unit(1)}
	var wg sync.WaitGroup
	libs := make([]string, 6)
	for i := range libs {
		wg.Go(func() {
			objects, err := b.Objects(t.Context(), units)
			if err != nil {
				t.Error(err)
				return
			}
			if libs[i], err = b.Shared(t.Context(), objects, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, l := range libs {
		if l != libs[0] || !regular.Has(l) {
			t.Errorf("library %q, expected %q to exist", l, libs[0])
		}
	}
	if left := leftovers(t, b.Cache); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCompilerMessages(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	_, err := b.Objects(t.Context(), []Unit{unit(0), {Name: "bad.c", Source: []byte("int x = ;\n"), Flags: []string{"-O0"}}})
	if err == nil || !strings.Contains(err.Error(), "compiling bad.c") || !strings.Contains(err.Error(), "bad.c:1") {
		t.Fatalf("error does not show the compiler's message: %v", err)
	}
	if left := leftovers(t, b.Cache); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestCancel interrupts a compiler that never ends, together with its child.
func TestCancel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "slowcc")
	text := "#!/bin/sh\ncase \"$*\" in *--version*) echo slow 1; exit;; esac\nsleep 60 &\necho $! > " + dir + "/child\nwait\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	cc, err := FindCompiler(t.Context(), script)
	if err != nil {
		t.Skipf("no shell to run a script: %v", err)
	}
	cache, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for range 500 {
			if regular.Has(filepath.Join(dir, "child")) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	b := &Builder{Cache: cache, CC: cc, Jobs: 1}
	start := time.Now()
	_, err = b.Objects(ctx, []Unit{unit(0), unit(1)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, expected context.Canceled", err)
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("took %v to stop", d)
	}
	if left := leftovers(t, b.Cache); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if regular.Has(b.Cache.Path("obj", b.unitKey(unit(0)), ".o")) {
		t.Error("an interrupted compile left an object")
	}
}

func TestNamedCompilerMissing(t *testing.T) {
	t.Parallel()
	_, err := FindCompiler(t.Context(), "no-such-compiler-here")
	if err == nil || !strings.Contains(err.Error(), "no-such-compiler-here") || !strings.Contains(err.Error(), "install") {
		t.Errorf("error %v, expected the name and how to install one", err)
	}
}

func TestNoCompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CC", "")
	_, err := FindCompiler(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "no C compiler found") {
		t.Errorf("error %v, expected that none was found", err)
	}
}

func TestInstallHint(t *testing.T) {
	t.Parallel()
	for _, m := range managers {
		got := hintFor("linux", func(p string) (string, error) {
			if p == m.program {
				return p, nil
			}
			return "", exec.ErrNotFound
		})
		if got != m.install {
			t.Errorf("%s: hint %q", m.program, got)
		}
	}
	if got := hintFor("darwin", exec.LookPath); got != "xcode-select --install" {
		t.Errorf("darwin: hint %q", got)
	}
}

func TestStalePrivateDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, "tmp", "obj-old"), filepath.Join(dir, "tmp", "obj-new")
	for _, d := range []string{old, fresh} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * staleAfter)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCache(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("a stale private directory stayed")
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error("another process's private directory was removed")
	}
}

func TestKeyParts(t *testing.T) {
	t.Parallel()
	if Key("ab", "c") == Key("a", "bc") {
		t.Error("a byte moved between parts keeps the key")
	}
}
