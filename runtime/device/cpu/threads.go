//go:build unix

package cpu

import (
	"runtime"
	"sync"
)

// cores is read once, before any thread is pinned and sees less.
var cores = sync.OnceValue(processors)

// DefaultThreads is the number of physical cores that this process may use,
// by its affinity and by the processor share of its control group.
func DefaultThreads() int {
	return max(1, min(len(cores()), runtime.GOMAXPROCS(0)))
}

// CoreSet is the i-th of n equal sets of the cores that this process may use;
// nil where there are fewer cores than sets.
func CoreSet(i, n int) []int {
	list := cores()
	if n < 2 || len(list) < n || list[0] < 0 {
		return nil
	}
	return list[i*len(list)/n : (i+1)*len(list)/n]
}

// Pins returns the processor for each of n threads, or nil not to pin. It pins
// only when the threads are all the cores there are: with fewer, two programs
// would choose the same ones and leave the others idle.
func Pins(n int) []int {
	if list := cores(); n == len(list) && list[0] >= 0 {
		return list
	}
	return nil
}
