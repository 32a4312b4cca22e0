//go:build !unix

package build

import "os/exec"

// killGroup leaves cancellation to os/exec, which kills the program itself.
func killGroup(*exec.Cmd) {}
