//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestWritePID: the process id is in the file of the environment; without one,
// nothing is written; a folder of another machine is an error.
func TestWritePID(t *testing.T) {
	t.Setenv(pidFile, "")
	if err := writePID(); err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "rank-0")
	t.Setenv(pidFile, file)
	if err := writePID(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); string(data) != strconv.Itoa(os.Getpid())+"\n" {
		t.Errorf("the file has %q, %v", data, err)
	}
	t.Setenv(pidFile, filepath.Join(t.TempDir(), "none", "rank-0"))
	if err := writePID(); err == nil || !strings.Contains(err.Error(), "IFLOWC_PID_FILE") || !strings.Contains(err.Error(), "machine") {
		t.Errorf("a missing folder: %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(pidFile, pipe)
	if err := writePID(); err == nil {
		t.Error("a pipe that nobody reads is no error")
	}
}
