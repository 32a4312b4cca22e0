//go:build unix

package cpu

import (
	"runtime"
	"sync"
)

// cores is computed once, before pinning a thread narrows its affinity.
var cores = sync.OnceValue(processors)

// DefaultThreads returns the number of physical cores that this process may use,
// limited by its CPU affinity and the CPU quota of its cgroup.
func DefaultThreads() int {
	return max(1, min(len(cores()), runtime.GOMAXPROCS(0)))
}

// CoreSet returns the i-th of n equal sets of the cores that this process may use, or
// nil if there are fewer cores than sets.
func CoreSet(i, n int) []int {
	list := cores()
	if n < 2 || len(list) < n || list[0] < 0 {
		return nil
	}
	return list[i*len(list)/n : (i+1)*len(list)/n]
}

// Pins returns the CPU for each of n threads, or nil not to pin them. It pins only if
// the threads use all cores: with fewer, two programs would choose the same cores and
// leave the others idle.
func Pins(n int) []int {
	if list := cores(); n == len(list) && list[0] >= 0 {
		return list
	}
	return nil
}
