package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"runtime/debug"

	"github.com/iflowc/iflowc/runtime/build"
	"github.com/iflowc/iflowc/runtime/load"
	"github.com/iflowc/iflowc/templates"
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

type doctorCmd struct{}

// Run looks for what iflowc uses and says how to get what is missing.
func (doctorCmd) Run(ctx context.Context) error {
	missing := 0
	say := func(ok bool, what, detail string) {
		mark := "ok     "
		if !ok {
			mark = "missing"
			missing++
		}
		fmt.Printf("%s  %-16s %s\n", mark, what, detail)
	}
	if cc, err := build.FindCompiler(ctx, ""); err != nil {
		say(false, "C compiler", err.Error())
	} else {
		say(true, "C compiler", cc.Path+": "+cc.Version)
	}
	if path, err := exec.LookPath("go"); err != nil {
		say(false, "Go", "not on the path; install it from your system's packages (golang-go) or the Go website")
	} else {
		say(true, "Go", path)
	}
	if c, err := build.OpenCache(""); err != nil {
		say(false, "build cache", err.Error())
	} else {
		say(true, "build cache", c.Dir)
	}
	for _, isa := range templates.ISAs() {
		if isa.Arch != "" && isa.Arch != runtime.GOARCH {
			continue
		}
		detail := "this processor runs it"
		if lacks := load.Missing(isa.Needs); len(lacks) > 0 {
			detail = fmt.Sprintf("this processor lacks %v (binaries may still contain it)", lacks)
		}
		say(true, "isa "+isa.Name, detail)
	}
	if missing > 0 {
		return fmt.Errorf("%d of the things that compiling needs are missing", missing)
	}
	return nil
}
