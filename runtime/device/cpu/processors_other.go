//go:build unix && !linux

package cpu

import "runtime"

// processors returns as many numbers as there are CPUs; this system cannot pin threads.
func processors() []int {
	list := make([]int, runtime.NumCPU())
	for i := range list {
		list[i] = -1
	}
	return list
}

// Yield yields to other goroutines.
func Yield() { runtime.Gosched() }
