package access

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// TestWatch rotates a key: a changed file is read once it stays the same, a broken one
// keeps the old keys, and a signal reads at once.
func TestWatch(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "keys.yaml")
	replace := func(text string) { // as editors and Kubernetes do
		t.Helper()
		if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	replace("- {name: a, key: old}\n")
	synctest.Test(t, func(t *testing.T) {
		registry := &metrics.Registry{}
		c, err := New(Options{Registry: registry, Load: func() ([]Key, error) { keys, _, err := ReadFile(path); return keys, err }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var mu sync.Mutex // guards the results of reloads
		got, failed, reads := Change{}, error(nil), 0
		signals := make(chan os.Signal)
		go c.Watch(ctx, signals, path, func(change Change, err error) {
			mu.Lock()
			defer mu.Unlock()
			got, failed = change, err
			reads++
		})
		step := func(d time.Duration, n int, want Change, ok bool) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if reads != n || got != want || (failed == nil) != ok {
				t.Errorf("%d reads, %+v, %v", reads, got, failed)
			}
		}
		step(time.Minute, 0, Change{}, true)
		replace("- {name: a, key: [old, new]}\n")
		step(watchTime, 0, Change{}, true) // seen, and may still be written
		step(watchTime, 1, Change{2, 1, 0}, true)
		validKeys(t, c, "old", "new")
		if n := c.counts.outdated.Value("a"); n != 1 {
			t.Errorf("%v requests with an old key", n)
		}
		replace("- {name: a, key: new\n")
		step(time.Minute, 2, Change{}, false)
		validKeys(t, c, "old", "new")
		os.Remove(path)
		step(time.Minute, 3, Change{}, false)
		validKeys(t, c, "old", "new")
		replace("- {name: a, key: new}\n")
		signals <- syscall.SIGHUP
		step(0, 4, Change{1, 0, 1}, true)
		validKeys(t, c, "new")
		step(time.Minute, 4, Change{1, 0, 1}, true)
	})
}

// validKeys checks which of the keys old and new are valid.
func validKeys(t *testing.T, c *Control, keys ...string) {
	t.Helper()
	for _, k := range []string{"old", "new"} {
		_, err := c.Identify(from("1.2.3.4:5", "X-Api-Key", k))
		if (err == nil) != slices.Contains(keys, k) {
			t.Errorf("key %s: %v", k, err)
		}
	}
}
