// Package hostiletest tests readers of files that nobody has vouched for: what a reader
// costs is bounded by the size of what it reads.
package hostiletest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of a reader. Most readers take microseconds and a few times the size.
const (
	maxTime   = time.Second // of CPU, for at most a few MB
	maxMemory = 64 << 20    // beyond perByte for each byte
	perByte   = 64

	hung    = 20 * time.Second // when a read does not end,
	runaway = 4 << 30          // or allocates without one
)

// Read calls read, which reads size bytes from outside, and returns its error. The test
// fails if read takes more than a second of its thread's time, allocates more than 64 MB
// and 64 bytes for each byte read, or returns an error of several lines or of more than the
// file. A read that does not end panics, so that fuzzing keeps the input.
//
// Allocations are those of the whole process: a test that calls Read is not parallel.
func Read(t testing.TB, size int, read func() error) error {
	t.Helper()
	defer watch(t, size)()
	runtime.LockOSThread() // whose time is measured
	defer runtime.UnlockOSThread()
	bytes, used := allocated(), cpuTime()
	err := read()
	used, bytes = cpuTime()-used, allocated()-bytes
	if used > maxTime {
		t.Errorf("reading %d bytes took %v: %v", size, used, err)
	}
	if bytes > maxMemory+perByte*uint64(size) {
		t.Errorf("reading %d bytes allocated %d MB: %v", size, bytes>>20, err)
	}
	if err != nil {
		checkMessage(t, size, err)
	}
	return err
}

// watch panics if a read goes on until it has taken too much. The function ends it.
func watch(t testing.TB, size int) (end func()) {
	ended, begun, before := make(chan struct{}), time.Now(), allocated()
	go func() {
		tick := time.NewTicker(hung / 100)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				if took, bytes := time.Since(begun), allocated()-before; took > hung || bytes > runaway {
					panic(fmt.Sprintf("%s: reading %d bytes has taken %v and %d MB", t.Name(), size, took, bytes>>20))
				}
			}
		}
	}()
	return func() { close(ended) }
}

// checkMessage checks that an error is one line, which may quote the file.
func checkMessage(t testing.TB, size int, err error) {
	t.Helper()
	if text := err.Error(); len(text) > 8192+4*size || strings.Contains(text, "\n") {
		t.Errorf("an error of %d bytes and %d lines: %.300q", len(text), strings.Count(text, "\n")+1, text)
	}
}

// Refused calls Read and fails the test unless the error contains each of the texts. An
// empty text is in no error: the read may succeed.
func Refused(t testing.TB, size int, read func() error, want ...string) {
	t.Helper()
	err := Read(t, size, read)
	for _, w := range want {
		if w != "" && (err == nil || !strings.Contains(err.Error(), w)) {
			t.Errorf("error %v, want …%s…", err, w)
		}
	}
}

// Folder writes files by name to a new folder and returns it. A nil file is not written.
func Folder(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if data == nil {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// File writes a file to a new folder and returns its path.
func File(t testing.TB, name string, data []byte) string {
	t.Helper()
	if data == nil {
		data = []byte{}
	}
	return filepath.Join(Folder(t, map[string][]byte{name: data}), name)
}

// allocated returns the bytes that the process has allocated on the heap.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// cpuTime returns the CPU time of the calling thread, which other processes do not
// lengthen; where there is no such clock, that of the process.
func cpuTime() time.Duration {
	var use unix.Rusage
	if err := unix.Getrusage(clock, &use); err != nil {
		panic("bug: " + err.Error())
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
