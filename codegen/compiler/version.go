package compiler

import (
	"runtime/debug"
	"strings"
)

// release is the version of a release build, set by -ldflags -X.
var release = ""

// Version returns the version of this compiler: that of a release or of go
// install, otherwise "devel" with the commit.
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; strings.HasPrefix(v, "v") && !strings.HasPrefix(v, "v0.0.0-") && !strings.Contains(v, "+dirty") {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
