//go:build linux

package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// A limit is the memory that a service may have: in a cgroup, which kills a service that
// takes more, or where none can be made, by the flag --memory alone.
type limit struct {
	bytes int64 // 0: no limit
	group string
}

// newLimit makes the cgroup.
func newLimit(bytes int64) limit {
	l := limit{bytes: bytes}
	if bytes == 0 {
		return l
	}
	name := fmt.Sprintf("iflowc-attack-%d", os.Getpid())
	for _, version := range []struct{ folder, file string }{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}} {
		group := filepath.Join(version.folder, name)
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		if os.WriteFile(filepath.Join(group, version.file), []byte(strconv.FormatInt(bytes, 10)), 0o644) == nil {
			l.group = group
			return l
		}
		os.Remove(group)
	}
	log.Print("no memory cgroup can be made here: the services get --memory, and their own peak is checked")
	return l
}

func (l *limit) remove() {
	if l.group != "" {
		os.Remove(l.group)
	}
}

// command returns the command that starts a service within the limit.
func (l *limit) command(bin string, args []string) *exec.Cmd {
	switch {
	case l.group != "":
		return exec.Command("sh", append([]string{"-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, l.group, bin}, args...)...)
	case l.bytes > 0:
		args = append(args, "--memory", strconv.FormatInt(l.bytes, 10))
	}
	return exec.Command(bin, args...)
}

// judge returns what is wrong with a service's peak in MB; "": nothing.
func (l *limit) judge(peak float64) string {
	if mb := float64(l.bytes) / 1e6; l.bytes > 0 && peak > mb {
		return fmt.Sprintf("%.0f MB of at most %.0f MB", peak, mb)
	}
	return ""
}
