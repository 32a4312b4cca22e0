package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is the version that a release build sets by -ldflags -X.
var release = ""

// version names this build of iflowc.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "devel-" + s.Value[:12]
			}
		}
	}
	return "devel"
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run() error {
	fmt.Printf("iflowc %s %s/%s\n", version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
