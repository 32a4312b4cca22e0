//go:build unix

package toolchain

import (
	"os/exec"
	"syscall"
)

// killGroup puts cmd into a process group of its own and makes cancellation
// kill the group: otherwise the children of a compiler driver outlive it.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
