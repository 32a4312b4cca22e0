//go:build unix

package hostmem

import "syscall"

// addressSpace returns what RLIMIT_AS leaves. A process whose Go heap grows, and whose
// threads have stacks, needs more addresses than memory: part of it is kept for these.
func addressSpace() (left int64, limited bool) {
	const kept = 512 << 20
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil || limit.Cur >= 1<<62 {
		return 0, false
	}
	used := numberAfter("/proc/self/status", "VmSize:") << 10
	return max(int64(limit.Cur)-used-kept, 1), true
}
