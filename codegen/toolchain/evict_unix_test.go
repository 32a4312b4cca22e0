//go:build linux || darwin

package toolchain

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestEvictAfterClose: a closed cache is not in use, even while a process that was being
// started when it was closed still holds a copy of its open files.
func TestEvictAfterClose(t *testing.T) {
	t.Parallel()
	c := filled(t, "lib", "aa1")
	needLocks(t, c)
	other, err := OpenCache(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	inherited, err := unix.Dup(int(other.lock.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	other.Close()
	if freed, err := c.Evict(-1, 0); err != nil || freed != 1000 {
		t.Errorf("freed %d, %v", freed, err)
	}
}
