//go:build unix && !linux

package cpu

import "syscall"

// loadMemory fails: this system has no memory files.
func loadMemory(string) (uintptr, error) { return 0, syscall.ENOSYS }
