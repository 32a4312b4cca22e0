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

// create makes the cgroup.
func (l *limit) create() {
	if l.bytes == 0 {
		return
	}
	name := fmt.Sprintf("iflowc-attack-%d", os.Getpid())
	for _, version := range []struct{ folder, file string }{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}} {
		group := filepath.Join(version.folder, name)
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		if os.WriteFile(filepath.Join(group, version.file), []byte(strconv.FormatInt(l.bytes, 10)), 0o644) == nil {
			l.group = group
			return
		}
		os.Remove(group)
	}
	log.Print("no memory cgroup can be made here: the services get --memory, and their own peak is checked")
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
