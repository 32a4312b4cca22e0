//go:build unix

package main

import (
	"fmt"
	"runtime"

	"github.com/iflowc/iflowc/codegen/compiler"
)

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run() error {
	_, err := fmt.Println(version())
	return err
}

// version describes this build and its platform.
func version() string {
	return fmt.Sprintf("iflowc %s %s/%s", compiler.Version(), runtime.GOOS, runtime.GOARCH)
}
