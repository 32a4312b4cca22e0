//go:build !unix

package toolchain

import "os/exec"

// killGroup leaves cancellation to os/exec, which kills the program itself.
func killGroup(*exec.Cmd) {}
