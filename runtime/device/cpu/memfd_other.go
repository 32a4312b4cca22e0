//go:build unix && !linux

package cpu

import "syscall"

// loadMemory is for systems with files in memory only.
func loadMemory(string) (uintptr, error) { return 0, syscall.ENOSYS }
