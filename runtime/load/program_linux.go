package load

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// ForgetStart hands back memory that only starting needed: what Go's heap has
// free, and the pages of the program's file that starting has
// read and that nothing has written: code of packages that are set up once,
// tables, the embedded libraries and tokenizer. What runs on comes back from the
// system's cache, 64 KB a fault. Failing costs nothing but that memory.
func ForgetStart() {
	rest()
	path, err := os.Executable()
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer f.Close()
	var ranges [][2]uintptr // first all of them: what follows may fault lines of this list in again
	for s := bufio.NewScanner(f); s.Scan(); {
		if from, to, ok := readOnlyPart(s.Text(), path); ok {
			ranges = append(ranges, [2]uintptr{from, to})
		}
	}
	for _, r := range ranges {
		syscall.Syscall(syscall.SYS_MADVISE, r[0], r[1]-r[0], syscall.MADV_DONTNEED)
	}
}

// readOnlyPart reads a line of /proc/self/maps, "from-to rights offset device
// inode path": the addresses where it is a part of the file that cannot be
// written.
func readOnlyPart(line, path string) (from, to uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[5] != path || len(fields[1]) != 4 || fields[1][1] != '-' {
		return 0, 0, false
	}
	low, high, _ := strings.Cut(fields[0], "-")
	a, errA := strconv.ParseUint(low, 16, 64)
	b, errB := strconv.ParseUint(high, 16, 64)
	return uintptr(a), uintptr(b), errA == nil && errB == nil && a < b && unsafe.Sizeof(uintptr(0)) == 8
}
