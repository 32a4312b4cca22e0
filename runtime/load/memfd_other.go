//go:build unix && !linux

package load

import "syscall"

// loadMemory is for systems with files in memory only.
func loadMemory(string) (uintptr, error) { return 0, syscall.ENOSYS }
