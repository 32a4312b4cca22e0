package cpu

import "golang.org/x/sys/unix"

// Confine keeps the calling thread, and those that it starts, on some processors;
// none: it may run anywhere. Failing costs speed alone.
func Confine(cpus []int) {
	if len(cpus) == 0 {
		return
	}
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	unix.SchedSetaffinity(0, &set)
}
