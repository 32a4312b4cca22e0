// Package hostmem says how much of the host's memory this process has and may still take.
package hostmem

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Available returns the bytes that this process can allocate without swapping, within
// the limits of its cgroups and of its address space (ulimit -v); 0: unknown.
func Available() int64 {
	n := availableIn("/")
	if left, limited := addressSpace(); limited && (n == 0 || left < n) {
		return left
	}
	return n
}

// Resident returns the bytes of memory that this process has; 0: unknown.
func Resident() int64 { return numberAfter("/proc/self/status", "VmRSS:") << 10 }

// cgroupFiles are the files of a version of cgroups that limit memory.
type cgroupFiles struct {
	controller  string // in /proc/self/cgroup
	folder      string // below /sys/fs/cgroup
	limit, used string
	stat        string // prefix of the lines active_file and inactive_file of memory.stat: pages of files, which are in used but can be dropped
}

var cgroupVersions = []cgroupFiles{
	{"memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"},
	{"", "", "memory.max", "memory.current", ""},
}

// availableIn is Available with /proc and /sys below a folder.
func availableIn(root string) int64 {
	n := numberAfter(filepath.Join(root, "proc/meminfo"), "MemAvailable:") << 10
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return n
	}
	for line := range strings.Lines(string(text)) {
		_, line, _ = strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controller, own, _ := strings.Cut(line, ":")
		for _, v := range cgroupVersions {
			if v.controller != controller {
				continue
			}
			if left, ok := v.left(filepath.Join(root, "sys/fs/cgroup", v.folder), own); ok && (n == 0 || left < n) {
				n = left
			}
		}
	}
	return n
}

// left returns the least that a cgroup and those around it leave; false without limits. A
// process in a container may see its own cgroup as the root.
func (v cgroupFiles) left(root, own string) (left int64, limited bool) {
	for own = path.Clean("/" + own); ; own = path.Dir(own) {
		dir := filepath.Join(root, own)
		limit, errLimit := number(filepath.Join(dir, v.limit))
		used, errUsed := number(filepath.Join(dir, v.used))
		if errLimit == nil && errUsed == nil {
			for _, pages := range []string{"active_file ", "inactive_file "} {
				used -= numberAfter(filepath.Join(dir, "memory.stat"), v.stat+pages)
			}
			if here := max(limit-used, 1); !limited || here < left {
				left, limited = here, true
			}
		}
		if own == "/" {
			return left, limited
		}
	}
}

// numberAfter returns the number after a prefix of a line, in a file like /proc/meminfo; 0:
// unknown.
func numberAfter(path, prefix string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// number reads a file that contains one number. A cgroup's "max" is an error.
func number(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}
