package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iflowc/iflowc/ir/irtest"
)

// forOneISA stands before iflowc where not all tests run: a page's models are
// made for one instruction set, which takes a third of the time.
const forOneISA = `#!/bin/sh
case "$1" in compile | run) exec "%[1]s" "$@" --isa portable ;; esac
exec "%[1]s" "$@"
`

// TestDocs runs every block of the documentation that is marked as shell and
// nothing else, a page in one shell, in a folder that has the repository's
// models and documentation: every page that makes no model, and a sample of those
// that do. (Blocks marked with a stage's name are run
// by that stage of .ci/run.)
func TestDocs(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	bin, err := command()
	if err != nil {
		t.Fatal(err)
	}
	bins := filepath.Dir(bin)
	if !irtest.All() {
		bins = t.TempDir()
		if err := os.WriteFile(filepath.Join(bins, "iflowc"), fmt.Appendf(nil, forOneISA, bin), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	pages := documentation(t)
	shown := slices.DeleteFunc(slices.Sorted(maps.Keys(pages)), func(page string) bool { return len(fenced(pages[page], "sh")) == 0 })
	if len(shown) < 7 {
		t.Errorf("%d pages have commands", len(shown))
	}
	made := func(page string) bool {
		return regexp.MustCompile(`(?m)^iflowc (compile|run) `).MatchString(strings.Join(fenced(pages[page], "sh"), "\n"))
	}
	quick := slices.DeleteFunc(slices.Clone(shown), made)
	slow := slices.DeleteFunc(shown, func(page string) bool { return !made(page) })
	for _, page := range slices.Concat(quick, irtest.Sample(t, 1, slow)) {
		blocks := fenced(pages[page], "sh")
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			script := strings.Join(blocks, "\n")
			for tool, use := range map[string]string{"bash": "", "curl": "curl ", "cc": "\ncc ", "python3": "python3 "} {
				if _, err := exec.LookPath(tool); err != nil && regexp.MustCompile(use).MatchString(script) {
					t.Skipf("needs %s", tool)
				}
			}
			runPage(t, bins, script)
		})
	}
}

// pagePort is how the pages write the port of a service.
const pagePort = "18080"

// runPage runs a page's commands with the iflowc of the folder bins; the first that fails ends it. What they
// started in the background ends with the page.
func runPage(t *testing.T, bins, script string) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"models", "docs"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	if strings.Contains(script, pagePort) {
		script = strings.ReplaceAll(script, pagePort, strconv.Itoa(freePort(t)))
	}
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-x", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bins+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return os.ErrProcessDone
	}
	cmd.Cancel, cmd.WaitDelay = kill, 5*time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	_ = kill() // a service that the page left behind; mostly there is none
	if err != nil {
		t.Errorf("%v\n…%s", err, out.String()[max(0, out.Len()-3000):])
	}
}

// freePort finds a port that nobody listens at, below those that the system
// gives to whoever asks for any: nothing takes it before the page does.
func freePort(t *testing.T) int {
	t.Helper()
	for i := range 1000 {
		port := 20000 + (os.Getpid()*7+i*13+len(t.Name())*101)%10000
		if l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free from 20000 to 30000")
	return 0
}
