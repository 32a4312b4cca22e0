package cpu

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

// processors returns one logical CPU of each physical core that this process may run
// on. Hyperthreads share the vector units and caches of a core, which one kernel thread
// fills.
func processors() []int {
	var mask [128]uint64 // 8192 CPUs
	n, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if errno != 0 {
		return nil
	}
	var list []int
	seen := map[string]bool{}
	for i := range int(n) * 8 {
		if mask[i/64]>>(i%64)&1 == 0 {
			continue
		}
		siblings, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i))
		core := strings.TrimSpace(string(siblings))
		if err != nil || core == "" {
			core = fmt.Sprint(i) // no topology available: count each logical CPU as a core
		}
		if !seen[core] {
			seen[core] = true
			list = append(list, i)
		}
	}
	return list
}

// Yield yields the CPU to other threads that are ready to run on it.
func Yield() { syscall.Syscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
