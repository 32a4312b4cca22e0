package main

import (
	"fmt"
	"runtime"

	"github.com/iflowc/iflowc/codegen/compiler"
)

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run() error {
	fmt.Printf("iflowc %s %s/%s\n", compiler.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
