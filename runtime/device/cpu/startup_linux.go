package cpu

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// A Startup knows the files that were mapped when the program began: its own and
// the libraries that it names. The zero Startup knows none.
type Startup struct{ mapped map[string]bool }

// AtStartup reads what is mapped. Call it in main before anything loads a
// library: see Release.
func AtStartup() Startup {
	opened.Lock()
	defer opened.Unlock()
	return Startup{mappedIn("/proc/self/maps")}
}

// Release hands back memory that only starting needed: what Go's heap has
// free, and the pages of the program's file, its libraries and the model's that
// starting has read and nothing has written: code of packages that are set up
// once, tables, the embedded libraries and tokenizer. What runs on comes back
// from the system's cache, 64 KB a fault. Failing costs nothing but that memory.
//
// Libraries that came later from elsewhere are left alone: another thread may be
// loading one, and the loader maps a library whole and unwritable before it lays
// its parts over that and writes addresses to them.
func (s Startup) Release() {
	collect()
	opened.Lock()
	defer opened.Unlock()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	ours := func(path string) bool { return s.mapped[path] || opened.files[path] }
	for _, r := range unwritten(f, ours) { // all have been read before: what follows may fault pages in again
		syscall.Syscall(syscall.SYS_MADVISE, r[0], r[1]-r[0], syscall.MADV_DONTNEED)
	}
}

// mappedIn lists the files in a text of the form of /proc/self/maps.
func mappedIn(maps string) map[string]bool {
	files := map[string]bool{}
	text, _ := os.ReadFile(maps)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 6 {
			files[pathIn(fields)] = true
		}
	}
	return files
}

// pathIn is the file of a line of /proc/self/maps, without the word that it has
// been removed since.
func pathIn(fields []string) string {
	return strings.TrimSuffix(strings.Join(fields[5:], " "), " (deleted)")
}

// unwritten reads the form of /proc/self/smaps: the addresses, from and to, of
// those parts of files of ours that cannot be written and have no page of which the
// process has a copy of its own, as where the loader has written addresses
// before it protected them.
func unwritten(smaps io.Reader, ours func(path string) bool) (parts [][2]uintptr) {
	last := false // the lines are of the part added last
	for s := bufio.NewScanner(smaps); s.Scan(); {
		fields := strings.Fields(s.Text())
		switch {
		case len(fields) == 3 && (fields[0] == "Anonymous:" || fields[0] == "Swap:"):
			if last && fields[1] != "0" {
				parts, last = parts[:len(parts)-1], false
			}
		case len(fields) > 0 && !strings.HasSuffix(fields[0], ":"):
			var r [2]uintptr
			if r, last = fileRange(fields); last {
				last = ours(pathIn(fields))
			}
			if last {
				parts = append(parts, r)
			}
		}
	}
	return parts
}

// fileRange reads "from-to rights offset device inode path": the addresses,
// where it is a part of a file that cannot be written.
func fileRange(fields []string) (r [2]uintptr, ok bool) {
	if len(fields) < 6 || fields[5][0] != '/' || len(fields[1]) != 4 || fields[1][1] != '-' || fields[1][3] != 'p' {
		return r, false
	}
	low, high, _ := strings.Cut(fields[0], "-")
	a, errA := strconv.ParseUint(low, 16, 64)
	b, errB := strconv.ParseUint(high, 16, 64)
	return [2]uintptr{uintptr(a), uintptr(b)}, errA == nil && errB == nil && a < b && unsafe.Sizeof(uintptr(0)) == 8
}
