package toolchain

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// candidates are the C compilers to look for, in this order, if neither --cc
// nor $CC names one.
var candidates = []string{"cc", "gcc", "clang"}

// A Compiler is a C compiler found on this system.
type Compiler struct {
	Path    string // absolute path of the program
	Version string // first line that --version prints
	Clang   bool   // use clang's flags instead of gcc's

	extra []string // words after the program in --cc or $CC ("ccache gcc", "clang --target=…")
	id    string   // identity, see Identity
}

// FindCompiler returns the C compiler that the user named (--cc, may be empty),
// else $CC, else the first of cc, gcc and clang on the path. If a named
// compiler cannot run, that is an error; no other one replaces it.
func FindCompiler(ctx context.Context, named string) (*Compiler, error) {
	origin := "--cc"
	if named == "" {
		named, origin = os.Getenv("CC"), "$CC"
	}
	if words := strings.Fields(named); len(words) > 0 {
		path, err := exec.LookPath(words[0])
		if err != nil {
			return nil, fmt.Errorf("C compiler %q from %s: not found; name one that exists, or install one: %s", words[0], origin, installHint())
		}
		return probe(ctx, path, words[1:])
	}
	var last error
	for _, name := range candidates {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		c, err := probe(ctx, path, nil)
		if err == nil {
			return c, nil
		}
		last = err // for example macOS's cc before its tools are installed
	}
	if last != nil {
		return nil, fmt.Errorf("%w; install a C compiler: %s", last, installHint())
	}
	return nil, fmt.Errorf("no C compiler found (looked for $CC, %s); install one: %s", strings.Join(candidates, ", "), installHint())
}

// probe runs path --version and collects the compiler's identity.
func probe(ctx context.Context, path string, extra []string) (*Compiler, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	version := command{program: path, args: append(slices.Clone(extra), "--version")}
	out, err := version.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("C compiler %s --version: %w", path, err)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, err
	}
	return &Compiler{
		Path: path, Version: first, extra: extra,
		Clang: strings.Contains(string(out), "clang"),
		id:    fmt.Sprintf("%s\n%d\n%d\n%s\n%s", real, info.Size(), info.ModTime().UnixNano(), strings.Join(extra, " "), out),
	}, nil
}

// Identity returns the properties of the compiler that determine its output: real path,
// size, modification time and the output of --version. Callers hash it.
func (c *Compiler) Identity() string { return c.id }

// run executes the compiler in dir; an error includes its output.
func (c *Compiler) run(ctx context.Context, dir string, args ...string) error {
	compile := command{dir: dir, program: c.Path, args: append(slices.Clone(c.extra), args...)}
	_, err := compile.run(ctx)
	return err
}

// A manager is a package manager and the command that installs a C compiler.
type manager struct{ program, install string }

var managers = []manager{
	{"apt-get", "sudo apt-get install -y gcc libc6-dev"},
	{"dnf", "sudo dnf install -y gcc glibc-devel"},
	{"yum", "sudo yum install -y gcc glibc-devel"},
	{"zypper", "sudo zypper install -y gcc glibc-devel"},
	{"pacman", "sudo pacman -S --noconfirm gcc"},
	{"apk", "sudo apk add gcc musl-dev"},
}

// installHint returns the command that installs a C compiler on this system.
func installHint() string { return hintFor(runtime.GOOS, exec.LookPath) }

func hintFor(goos string, look func(string) (string, error)) string {
	if goos == "darwin" {
		return "xcode-select --install"
	}
	for _, m := range managers {
		if _, err := look(m.program); err == nil {
			return m.install
		}
	}
	return "gcc or clang with the C library's headers, from this system's package manager"
}
