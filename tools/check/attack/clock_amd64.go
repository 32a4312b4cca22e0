//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const canSetClock = true

// A clock is the wall clock of another process. Processes read the time through the kernel's
// vDSO, code that is mapped into each; in that process alone, the code is replaced by a call
// of the kernel that adds an offset. This needs no rights but those over one's own child.
type clock struct {
	memory *os.File
	offset int64 // its address
}

// read is the code that replaces clock_gettime: the result of the system call, with the
// offset behind the code added to CLOCK_REALTIME.
var read = []byte{
	0xb8, 0xe4, 0, 0, 0, // mov eax, SYS_clock_gettime
	0x0f, 0x05, // syscall
	0x85, 0xff, // test edi, edi
	0x75, 0x0a, // jne to ret
	0x48, 0x8b, 0x0d, 6, 0, 0, 0, // mov rcx, [offset]
	0x48, 0x01, 0x0e, // add [rsi], rcx
	0xc3,       // ret
	0xcc, 0xcc, // up to offset
	0, 0, 0, 0, 0, 0, 0, 0, // offset in seconds
}

// openClock takes over the clock of a child process.
func openClock(pid int) (*clock, error) {
	from, to, err := vdso(pid)
	if err != nil {
		return nil, err
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	image := make([]byte, to-from)
	if _, err := memory.ReadAt(image, from); err != nil {
		return nil, err
	}
	at, err := entry(image)
	if err != nil {
		return nil, err
	}
	free := len(image) - 2*len(read)
	if strings.Trim(string(image[free:]), "\x00") != "" {
		return nil, errors.New("the vDSO has no room")
	}
	jump := binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(free-at-5))
	if _, err := memory.WriteAt(read, from+int64(free)); err != nil {
		return nil, err
	}
	if err := whileStopped(pid, from+int64(at), len(jump), func() error {
		_, err := memory.WriteAt(jump, from+int64(at))
		return err
	}); err != nil {
		return nil, err
	}
	return &clock{memory, from + int64(free+len(read)-8)}, nil
}

// set sets the difference to the machine's clock.
func (c *clock) set(d time.Duration) error {
	_, err := c.memory.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(int64(d/time.Second))), c.offset)
	return err
}

// vdso returns where a process has the vDSO.
func vdso(pid int) (from, to int64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(line, "[vdso]\n") {
			_, err = fmt.Sscanf(line, "%x-%x", &from, &to)
			return from, to, err
		}
	}
	return 0, 0, errors.Join(errors.New("the process has no vDSO"), err)
}

// entry returns where clock_gettime begins in the vDSO.
func entry(image []byte) (int, error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if at := s.Value - f.Progs[0].Vaddr; s.Name == "__vdso_clock_gettime" && at < uint64(len(image)) {
			return int(at), nil
		}
	}
	return 0, errors.New("the vDSO has no clock_gettime")
}

// whileStopped calls f while a process is stopped and none of its threads is within the code
// at an address.
func whileStopped(pid int, at int64, n int, f func() error) error {
	defer syscall.Kill(pid, syscall.SIGCONT)
	for range 100 {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
		if outside(pid, at, n) {
			return f()
		}
		syscall.Kill(pid, syscall.SIGCONT)
		time.Sleep(time.Millisecond)
	}
	return errors.New("a thread is always reading the clock")
}

// outside reports whether all threads are stopped, none of them within the code.
func outside(pid int, at int64, n int) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	for _, file := range files {
		text, err := os.ReadFile(file)
		fields := strings.Fields(string(text))
		if err != nil || len(fields) < 3 { // "running"
			return false
		}
		var pc int64
		if _, err := fmt.Sscanf(fields[len(fields)-1], "0x%x", &pc); err != nil || pc > at && pc < at+int64(n) {
			return false
		}
	}
	return len(files) > 0
}
