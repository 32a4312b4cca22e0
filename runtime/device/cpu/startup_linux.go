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

// A Startup records the files that were mapped when the program started: the program
// itself and its shared libraries. The zero Startup records none.
type Startup struct{ mapped map[string]bool }

// AtStartup reads the list of mapped files. Call it in main before anything loads a
// library: see Release.
func AtStartup() Startup {
	opened.Lock()
	defer opened.Unlock()
	return Startup{mappedIn("/proc/self/maps")}
}

// Release returns memory that only startup needed to the system: free memory of Go's
// heap, and unmodified pages of the program's file, its shared libraries and the
// model's libraries, such as initialization code, tables, the embedded libraries and
// the tokenizer. Pages that are still used are read again from the system's page cache,
// 64 KB per fault. Errors are ignored.
//
// Release skips libraries that were loaded later from elsewhere, because another thread
// may be loading one: the loader maps a whole library read-only before it maps its
// segments over that and writes relocations.
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
	for _, r := range unwritten(f, ours) { // read the whole list first: the calls below may fault pages in again
		syscall.Syscall(syscall.SYS_MADVISE, r[0], r[1]-r[0], syscall.MADV_DONTNEED)
	}
}

// mappedIn returns the files in a text in the format of /proc/self/maps.
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

// pathIn returns the file of a line of /proc/self/maps, without the suffix "
// (deleted)".
func pathIn(fields []string) string {
	return strings.TrimSuffix(strings.Join(fields[5:], " "), " (deleted)")
}

// unwritten parses the format of /proc/self/smaps. It returns the address ranges [from,
// to) of mapped files for which ours returns true, if the range is not writable and the
// process has no private copy of any of its pages. The loader leaves private copies
// where it wrote relocations before it protected them.
func unwritten(smaps io.Reader, ours func(path string) bool) (parts [][2]uintptr) {
	last := false // the following lines describe the last range of parts
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

// fileRange parses "from-to rights offset device inode path". It returns the addresses
// if the range belongs to a file and is not writable.
func fileRange(fields []string) (r [2]uintptr, ok bool) {
	if len(fields) < 6 || fields[5][0] != '/' || len(fields[1]) != 4 || fields[1][1] != '-' || fields[1][3] != 'p' {
		return r, false
	}
	low, high, _ := strings.Cut(fields[0], "-")
	a, errA := strconv.ParseUint(low, 16, 64)
	b, errB := strconv.ParseUint(high, 16, 64)
	return [2]uintptr{uintptr(a), uintptr(b)}, errA == nil && errB == nil && a < b && unsafe.Sizeof(uintptr(0)) == 8
}
