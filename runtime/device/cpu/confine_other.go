//go:build unix && !linux

package cpu

// Confine does nothing: this system does not support CPU affinity.
func Confine([]int) {}
