//go:build unix && !linux

package cpu

import "runtime"

// processors counts processors; these systems do not let threads be pinned.
func processors() []int {
	list := make([]int, runtime.NumCPU())
	for i := range list {
		list[i] = -1
	}
	return list
}

// Yield lets other goroutines go first.
func Yield() { runtime.Gosched() }
