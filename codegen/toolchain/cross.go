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

// triples names systems as GNU tools do.
var triples = map[Target]string{
	{"linux", "amd64"}: "x86_64-linux-gnu",
	{"linux", "arm64"}: "aarch64-linux-gnu",
}

// machines are the words with which compilers name an architecture.
var machines = map[string][]string{"amd64": {"x86_64", "amd64"}, "arm64": {"aarch64", "arm64"}}

// systems are the words with which compilers name a system.
var systems = map[string][]string{"linux": {"linux"}, "darwin": {"darwin", "macos"}}

// FindCompilerFor is FindCompiler for code that another system will run. A
// named compiler (--cc, else $CC) must make code for it; without a name
// TRIPLE-gcc and then clang --target=TRIPLE are looked for, with a C library.
func FindCompilerFor(ctx context.Context, named string, target Target) (*Compiler, error) {
	if target == (Target{runtime.GOOS, runtime.GOARCH}) {
		return FindCompiler(ctx, named)
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
		return nil, fmt.Errorf("no C compiler for %s/%s is known; name one by --cc", target.OS, target.Arch)
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
	return nil, fmt.Errorf("no C compiler for %s/%s found (looked for %s-gcc, and clang with a C library for it); install one (Debian: apt-get install %s) or name one by --cc",
		target.OS, target.Arch, triple, debianCross(triple, target.Arch))
}

// debianCross lists Debian's packages of a cross compiler and its C library.
func debianCross(triple, arch string) string {
	return "gcc-" + strings.ReplaceAll(triple, "_", "-") + " libc6-dev-" + arch + "-cross"
}

// makes says whether the compiler's code is for a target.
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
		return fmt.Errorf("C compiler %s makes code for %s, not for %s/%s; name a cross compiler by --cc%s", c.Path, machine, target.OS, target.Arch, hint)
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

// links says whether there are headers and libraries to make a library with.
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
