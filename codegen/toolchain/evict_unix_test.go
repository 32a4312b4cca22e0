//go:build linux || darwin

package toolchain

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEvictInUse: while another has the cache open, nothing goes. A closed cache is not in
// use, even while a process that was being started when it was closed still holds a copy of
// its open files.
func TestEvictInUse(t *testing.T) {
	t.Parallel()
	c := filled(t, "lib", "aa1")
	needLocks(t, c)
	other, err := OpenCache(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if freed, err := c.Evict(-1, 0); err == nil || freed != 0 || !strings.Contains(err.Error(), "another iflowc") || len(held(c, "lib")) != 1 {
		t.Errorf("freed %d, %v", freed, err)
	}
	inherited, err := unix.Dup(int(other.lock.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	other.Close()
	if freed, err := c.Evict(-1, 0); err != nil || freed != 1000 || len(held(c, "lib")) != 0 {
		t.Errorf("after the other has ended: freed %d, %v, left %v", freed, err, held(c, "lib"))
	}
}
