package templates

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir/irtest"
	"golang.org/x/sys/cpu"
)

var (
	useCC  = flag.String("use-cc", "", "C compiler that the tests run, instead of gcc or clang")
	useISA = flag.String("only", "", "instruction set to test, instead of all that the processor has")
)

// scratch holds what the tests share.
var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "iflowc-templates-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// compilers are the C compilers this machine has; the first one alone unless
// all cases are asked for.
func compilers(t testing.TB) []string {
	t.Helper()
	var found []string
	if *useCC != "" {
		return []string{*useCC}
	}
	for _, cc := range []string{"gcc", "clang"} {
		if _, err := exec.LookPath(cc); err == nil {
			found = append(found, cc)
		}
	}
	if len(found) == 0 {
		if _, err := exec.LookPath("cc"); err != nil {
			t.Skip("no C compiler: gcc, clang or cc is needed")
		}
		found = []string{"cc"}
	}
	if !irtest.All() {
		return found[:1]
	}
	return found
}

// runnable are the instruction sets this processor has.
func runnable() []ISA {
	var out []ISA
	for _, s := range isas {
		if (s.Arch == "" || s.Arch == runtime.GOARCH && supported(s.Needs)) && (*useISA == "" || s.Name == *useISA) {
			out = append(out, s)
		}
	}
	return out
}

func supported(needs []string) bool {
	x := reflect.ValueOf(cpu.X86)
	if runtime.GOARCH == "arm64" {
		x = reflect.ValueOf(cpu.ARM64)
	}
	return !slices.ContainsFunc(needs, func(n string) bool { return !x.FieldByName("Has" + n).Bool() })
}

// library compiles C sources, by name, one run of the compiler each, and opens
// them as one shared library. The build cache keeps what is compiled.
func library(t testing.TB, cc string, isa ISA, sources map[string]string) uintptr {
	t.Helper()
	compiler, err := toolchain.FindCompiler(t.Context(), cc)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := toolchain.OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	flags := append([]string{"-fPIC", "-Wall", "-Wextra", "-Werror"}, isa.Flags...)
	names := slices.Sorted(maps.Keys(sources))
	parts := append([]string{compiler.Identity()}, flags...)
	for _, name := range names {
		parts = append(parts, name, sources[name])
	}
	texts := Headers()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		parts = append(parts, name, texts[name])
	}
	lib, err := cache.Make("lib", toolchain.Key(parts...), ".so", func(dir, out string) error {
		return build(cc, flags, dir, out, names, sources)
	})
	if err != nil {
		t.Fatalf("for %s: %v", isa.Name, err)
	}
	h, err := purego.Dlopen(lib, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// build compiles sources in a folder, as many at once as there are processors, and links them.
// A warning is an error.
func build(cc string, flags []string, dir, lib string, names []string, sources map[string]string) error {
	var wg sync.WaitGroup
	slots := make(chan bool, runtime.GOMAXPROCS(0))
	errs := make([]error, len(names))
	var objects []string
	for i, name := range names {
		src, obj := filepath.Join(dir, name+".c"), filepath.Join(dir, name+".o")
		objects = append(objects, obj)
		wg.Go(func() {
			slots <- true
			defer func() { <-slots }()
			include, err := headers(cc, flags, sources[name])
			if err == nil {
				err = os.WriteFile(src, []byte(sources[name]), 0o666)
			}
			if err == nil {
				err = run(cc, append(slices.Concat(flags, include), "-c", src, "-o", obj)...)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return run(cc, append(append([]string{"-shared", "-o", lib}, objects...), "-lm")...)
}

// run runs a compiler, which must print nothing.
func run(cc string, args ...string) error {
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil || len(out) > 0 {
		return fmt.Errorf("%s %s: %v\n%s", cc, strings.Join(args, " "), err, out)
	}
	return nil
}

// precompiled are the folders of headers, by the flags that gcc read them with.
var precompiled = struct {
	sync.Mutex
	dirs map[string]string
}{dirs: map[string]string{}}

// headers gives the flags that let a source text include the headers. The vectors'
// header is read once for all sources where the compiler is gcc: it includes every
// intrinsic function that there is, and most kernels are compiled in less time than
// those are read in. What gcc reads so loses the pragma that has it silent on how
// vectors are passed.
func headers(cc string, flags []string, text string) ([]string, error) {
	precompiled.Lock()
	defer precompiled.Unlock()
	key := cc + " " + strings.Join(flags, " ")
	dir, ok := precompiled.dirs[key]
	if !ok {
		var err error
		if dir, err = os.MkdirTemp(scratch, ""); err != nil {
			return nil, err
		}
		for name, text := range Headers() {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				return nil, err
			}
		}
		if cc == "gcc" {
			all := filepath.Join(dir, "all.h")
			if err := os.WriteFile(all, []byte("#include \"ifl_vec.h\"\n"), 0o666); err != nil {
				return nil, err
			}
			if err := run(cc, append(slices.Clone(flags), "-Wno-psabi", "-x", "c-header", all, "-o", all+".gch")...); err != nil {
				return nil, err
			}
		}
		precompiled.dirs[key] = dir
	}
	if cc != "gcc" || strings.Contains(text, "#define _GNU_SOURCE") { // which says what the system's headers are to declare
		return []string{"-I" + dir}, nil
	}
	return []string{"-I" + dir, "-Wno-psabi", "-include", "all.h"}, nil
}

func writeFile(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func symbol(t testing.TB, lib uintptr, name string) uintptr {
	t.Helper()
	p, err := purego.Dlsym(lib, name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// onEach runs f for every compiler and instruction set, but for those that only
// some kernels are for. With all cases the portable
// text is also compiled for a processor with AVX2, where its vectors are wider.
func onEach(t *testing.T, f func(t *testing.T, cc string, isa ISA)) {
	onEachOf(t, slices.DeleteFunc(runnable(), func(s ISA) bool { return s.Act != "" }), f)
}

func onEachOf(t *testing.T, sets []ISA, f func(t *testing.T, cc string, isa ISA)) {
	for _, cc := range compilers(t) {
		for _, isa := range sets {
			t.Run(cc+"/"+isa.Name, func(t *testing.T) { f(t, cc, isa) })
		}
		if irtest.All() && cpu.X86.HasAVX2 && cpu.X86.HasFMA {
			isa, _ := findISA("portable")
			isa.Flags = append([]string{"-march=x86-64-v3"}, isa.Flags...)
			t.Run(cc+"/portable-avx2", func(t *testing.T) { f(t, cc, isa) })
		}
	}
}
