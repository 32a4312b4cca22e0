package cpu

import "golang.org/x/sys/unix"

// Confine sets the CPU affinity of the calling thread and of threads that it starts;
// with no CPUs it does nothing. Errors are ignored: they only cost speed.
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
