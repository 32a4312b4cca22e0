package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// A GoTool is the go command.
type GoTool struct{ Path string }

// FindGo returns the go command: on the path, in $GOROOT, or where its
// installers put it.
func FindGo() (*GoTool, error) {
	if path, err := exec.LookPath("go"); err == nil {
		return &GoTool{path}, nil
	}
	for _, root := range []string{os.Getenv("GOROOT"), "/usr/local/go", "/usr/lib/go", "/opt/homebrew/opt/go/libexec"} {
		path := filepath.Join(root, "bin", "go")
		if root != "" && regular.Has(path) {
			return &GoTool{path}, nil
		}
	}
	return nil, errors.New("no Go toolchain found (looked for go on the path and in /usr/local/go); install Go 1.26 or newer from https://go.dev/dl/ and put its bin folder on the path")
}

// A Target is the system for which a Go program is built; empty fields mean this system.
type Target struct{ OS, Arch string }

// TargetFromEnv returns the target that GOOS and GOARCH name.
func TargetFromEnv() Target {
	t := Target{os.Getenv("GOOS"), os.Getenv("GOARCH")}
	if t.OS == "" {
		t.OS = runtime.GOOS
	}
	if t.Arch == "" {
		t.Arch = runtime.GOARCH
	}
	return t
}

// Build builds the main package of a vendored module in dir and writes the
// program to out. The build ignores the user's Go settings, so that it is
// reproducible and downloads nothing.
func (g *GoTool) Build(ctx context.Context, dir, out string, target Target) error {
	return g.build(ctx, dir, out, target, []string{"CGO_ENABLED=0"})
}

// BuildShared builds the module in dir as a shared library with a C interface,
// with the C compiler cc.
func (g *GoTool) BuildShared(ctx context.Context, dir, out string, target Target, cc string) error {
	return g.build(ctx, dir, out, target, []string{"CGO_ENABLED=1", "CC=" + cc}, "-buildmode=c-shared")
}

func (g *GoTool) build(ctx context.Context, dir, out string, target Target, env []string, flags ...string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	args := append([]string{"build", "-mod=vendor", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out}, flags...)
	cmd := command{
		dir: dir, program: g.Path, args: append(args, "."),
		env: append(append(goEnv(),
			"GOOS="+target.OS, "GOARCH="+target.Arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=",
			"GOFLAGS=", "GOENV=off", "GOPROXY=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOWORK=off", "GO111MODULE=on",
		), env...),
	}
	if _, err := cmd.run(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("building for %s/%s: %w", target.OS, target.Arch, err)
	}
	return nil
}

// goEnv returns the environment without the variables that change a Go build.
func goEnv() []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "GO") || name == "GOCACHE" || name == "GOTMPDIR" || name == "GOROOT" || name == "GOMODCACHE" || name == "GOPATH" || name == "GOMAXPROCS" {
			env = append(env, v)
		}
	}
	return env
}
