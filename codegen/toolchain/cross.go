package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// triples maps systems to GNU target triples.
var triples = map[Target]string{
	{"linux", "amd64"}: "x86_64-linux-gnu",
	{"linux", "arm64"}: "aarch64-linux-gnu",
}

// machines lists the names that compilers use for an architecture.
var machines = map[string][]string{"amd64": {"x86_64", "amd64"}, "arm64": {"aarch64", "arm64"}}

// systems lists the names that compilers use for a system.
var systems = map[string][]string{"linux": {"linux"}, "darwin": {"darwin", "macos"}}

// FindCompilerFor is like FindCompiler, for a target system. A named compiler (--cc,
// else $CC) must generate code for the target. Otherwise FindCompilerFor looks for
// TRIPLE-gcc, then for clang --target=TRIPLE with a C library.
func FindCompilerFor(ctx context.Context, named string, target Target) (*Compiler, error) {
	if target == (Target{runtime.GOOS, runtime.GOARCH}) {
		return FindCompiler(ctx, named)
	}
	if systems[target.OS] == nil {
		return nil, fmt.Errorf("no binaries for %s/%s, only for linux and darwin; on Windows, run those for linux in WSL2", target.OS, target.Arch)
	}
	if named != "" || os.Getenv("CC") != "" {
		c, err := FindCompiler(ctx, named)
		if err != nil {
			return nil, err
		}
		return c, c.makes(ctx, target)
	}
	triple := triples[target]
	if triple == "" {
		return nil, fmt.Errorf("no known C compiler for %s/%s; name one with --cc", target.OS, target.Arch)
	}
	for _, words := range [][]string{{triple + "-gcc"}, {"clang", "--target=" + triple}} {
		path, err := exec.LookPath(words[0])
		if err != nil {
			continue
		}
		c, err := probe(ctx, path, words[1:])
		if err == nil && c.makes(ctx, target) == nil && c.links(ctx) == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no C compiler for %s/%s found (looked for %s-gcc, and clang with a C library for it); install one (Debian: apt-get install %s) or name one with --cc",
		target.OS, target.Arch, triple, debianCross(triple, target.Arch))
}

// debianCross lists Debian's packages of a cross compiler and its C library.
func debianCross(triple, arch string) string {
	return "gcc-" + strings.ReplaceAll(triple, "_", "-") + " libc6-dev-" + arch + "-cross"
}

// makes returns an error unless the compiler generates code for a target.
func (c *Compiler) makes(ctx context.Context, target Target) error {
	ask := command{program: c.Path, args: append(append([]string(nil), c.extra...), "-dumpmachine")}
	out, err := ask.run(ctx)
	if err != nil {
		return fmt.Errorf("C compiler %s -dumpmachine: %w", c.Path, err)
	}
	machine := strings.TrimSpace(string(out))
	if !mentions(machine, machines[target.Arch]) || !mentions(machine, systems[target.OS]) {
		hint := ""
		if triple := triples[target]; triple != "" {
			hint = fmt.Sprintf(": %s-gcc, or \"clang --target=%s\"", triple, triple)
		}
		return fmt.Errorf("C compiler %s generates code for %s, not for %s/%s; name a cross compiler with --cc%s", c.Path, machine, target.OS, target.Arch, hint)
	}
	return nil
}

func mentions(machine string, words []string) bool {
	for _, w := range words {
		if strings.Contains(machine, w) {
			return true
		}
	}
	return false
}

// links reports whether the headers and libraries to link a shared library exist.
func (c *Compiler) links(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "iflowc-cc-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := "#include <math.h>\n#include <pthread.h>\ndouble f(double x);\ndouble f(double x) { return sin(x); }\n"
	err = os.WriteFile(dir+"/f.c", []byte(source), 0o644)
	return errors.Join(err, c.run(ctx, dir, "-shared", "-fPIC", "-o", "f.so", "f.c", "-lm", "-lpthread"))
}
