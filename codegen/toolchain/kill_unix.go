//go:build unix

package toolchain

import (
	"os/exec"
	"syscall"
)

// killGroup gives cmd a process group of its own and makes its cancellation
// kill the whole group: a compiler driver's children outlive it otherwise.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
