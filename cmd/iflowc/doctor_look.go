//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/device/tune"
	"github.com/iflowc/iflowc/templates"
)

// leastGo is the oldest Go version that can build compiled models, as in
// go.mod.
const leastGo = "go1.26"

// lookCompiling finds the C compiler, Go, and a compiler for the other
// architecture.
func lookCompiling(ctx context.Context) []finding {
	var found []finding
	if cc, err := toolchain.FindCompiler(ctx, ""); err != nil {
		found = append(found, finding{State: findingMissing, What: "C compiler", Detail: err.Error()})
	} else {
		found = append(found, finding{State: findingOK, What: "C compiler", Detail: cc.Path + ": " + cc.Version})
	}
	found = append(found, lookGo(ctx))
	other := toolchain.Target{OS: "linux", Arch: "arm64"}
	if runtime.GOARCH == "arm64" {
		other.Arch = "amd64"
	}
	f := finding{State: findingOK, What: "C for " + other.Arch}
	if cc, err := toolchain.FindCompilerFor(ctx, "", other); err != nil {
		f.State, f.Detail = findingAbsent, "only GOARCH="+other.Arch+" needs it: "+err.Error()
	} else {
		f.Detail = cc.Path + ": " + cc.Version
	}
	return append(found, f)
}

func lookGo(ctx context.Context) finding {
	tool, err := toolchain.FindGo()
	if err != nil {
		return finding{State: findingMissing, What: "Go", Detail: err.Error()}
	}
	out, err := exec.CommandContext(ctx, tool.Path, "env", "GOVERSION").Output()
	version := strings.TrimSpace(string(out))
	if err != nil || version == "" {
		return finding{State: findingMissing, What: "Go", Detail: fmt.Sprintf("%s does not run: %v", tool.Path, err), Remedy: "install Go 1.26 or newer from https://go.dev/dl/"}
	}
	f := finding{State: findingOK, What: "Go", Detail: tool.Path + ": " + version}
	if olderGo(version) {
		f.State, f.Remedy = findingMissing, leastGo+" or newer is needed: https://go.dev/dl/"
	}
	return f
}

// olderGo reports whether a Go version is too old; development versions count
// as new.
func olderGo(version string) bool {
	var major, minor, leastMajor, leastMinor int
	if n, _ := fmt.Sscanf(version, "go%d.%d", &major, &minor); n < 2 {
		return false
	}
	fmt.Sscanf(leastGo, "go%d.%d", &leastMajor, &leastMinor)
	return major < leastMajor || major == leastMajor && minor < leastMinor
}

// lookRunning checks what compiled models use on this machine.
func lookRunning(context.Context) []finding {
	var found []finding
	m := tune.ThisMachine()
	m.Threads = cpu.DefaultThreads()
	found = append(found, finding{State: findingOK, What: "processor", Detail: tune.Describe(m)})
	for _, isa := range templates.ISAs() {
		if isa.Arch != "" && isa.Arch != runtime.GOARCH {
			continue
		}
		detail := "this CPU runs it"
		if lacks := cpu.Missing(isa.Needs); len(lacks) > 0 {
			detail = fmt.Sprintf("this CPU lacks %s (binaries may still contain it)", strings.Join(lacks, ", "))
		}
		found = append(found, finding{State: findingOK, What: "isa " + isa.Name, Detail: detail})
	}
	if f, ok := lookHugePages("/sys/kernel/mm/transparent_hugepage/enabled"); ok {
		found = append(found, f)
	}
	_, origin, err := new(compiler.Options).Measurements()
	switch {
	case err != nil:
		found = append(found, finding{State: findingNote, What: "profile", Detail: err.Error()})
	case origin == "":
		found = append(found, finding{State: findingNote, What: "profile", Detail: "iflowc ships none for this CPU; kernels are chosen by an estimate", Remedy: "iflowc profile SPEC, once per model (1 minute)"})
	default:
		found = append(found, finding{State: findingOK, What: "profile", Detail: origin})
	}
	return found
}

// lookHugePages reads the setting of transparent huge pages, on Linux.
func lookHugePages(path string) (finding, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return finding{}, false
	}
	f := finding{State: findingOK, What: "huge pages", Detail: "given to weights (" + strings.TrimSpace(string(text)) + ")"}
	if strings.Contains(string(text), "[never]") {
		f.State, f.Detail = findingNote, "switched off; weights in small pages are read more slowly"
		f.Remedy = "echo madvise | sudo tee " + path
	}
	return f, true
}

// lookDisk measures the cache and its disk.
func lookDisk(context.Context) []finding {
	c, err := toolchain.OpenCache("")
	if err != nil {
		return []finding{{State: findingMissing, What: "build cache", Detail: err.Error()}}
	}
	defer c.Close()
	f := finding{State: findingOK, What: "build cache", Detail: c.Dir}
	usage, err := c.Usage()
	limit, limitErr := c.Bound()
	switch {
	case err != nil:
		f.State, f.Detail = findingNote, err.Error()
	case limitErr != nil:
		f.State, f.Detail = findingMissing, limitErr.Error()
	default:
		f.Detail += ": " + usageText(usage, limit)
	}
	found := []finding{f}
	if free := toolchain.DiskFree(c.Dir); free > 0 {
		f := finding{State: findingOK, What: "free there", Detail: compiler.SizeText(free)}
		if free < 2e9 {
			f.State, f.Remedy = findingNote, "iflowc clean gives "+compiler.SizeText(usage.Bytes)+" back"
		}
		found = append(found, f)
	}
	return found
}

// usageText describes the contents of a cache: "1.2 GB of at most 20.0 GB (weights 1.1
// GB, obj 80 MB)".
func usageText(u toolchain.Usage, limit int64) string {
	text := compiler.SizeText(u.Bytes)
	if limit > 0 {
		text += " of at most " + compiler.SizeText(limit)
	}
	var kinds []string
	for kind, n := range u.Kinds {
		if n > 0 {
			kinds = append(kinds, kind)
		}
	}
	slices.SortFunc(kinds, func(a, b string) int { return int(min(max(u.Kinds[b]-u.Kinds[a], -1), 1)) })
	for i, kind := range kinds {
		kinds[i] = kind + " " + compiler.SizeText(u.Kinds[kind])
	}
	if len(kinds) > 0 {
		text += " (" + strings.Join(kinds, ", ") + ")"
	}
	return text
}
