package templates

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/ir/irtest"
	"golang.org/x/sys/cpu"
)

var (
	useCC  = flag.String("use-cc", "", "C compiler that the tests run, instead of gcc or clang")
	useISA = flag.String("only", "", "instruction set to test, instead of all that the processor has")
)

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
// them as one shared library.
func library(t testing.TB, cc string, isa ISA, sources map[string]string) uintptr {
	t.Helper()
	dir := t.TempDir()
	for name, text := range Headers() {
		writeFile(t, filepath.Join(dir, name), text)
	}
	flags := append([]string{"-fPIC", "-Wall", "-Wextra", "-Werror", "-I" + dir}, isa.Flags...)
	var wg sync.WaitGroup
	slots := make(chan bool, runtime.GOMAXPROCS(0))
	errs := make(chan error, len(sources))
	var objects []string
	for name, text := range sources {
		src, obj := filepath.Join(dir, name+".c"), filepath.Join(dir, name+".o")
		writeFile(t, src, text)
		objects = append(objects, obj)
		wg.Go(func() {
			slots <- true
			defer func() { <-slots }()
			if out, err := exec.Command(cc, append(slices.Clone(flags), "-c", src, "-o", obj)...).CombinedOutput(); err != nil || len(out) > 0 {
				errs <- fmt.Errorf("%s %s for %s: %v\n%s", cc, name, isa.Name, err, out)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if t.Failed() {
		t.FailNow()
	}
	slices.Sort(objects)
	lib := filepath.Join(dir, "kernels.so")
	if out, err := exec.Command(cc, append(append([]string{"-shared", "-o", lib}, objects...), "-lm")...).CombinedOutput(); err != nil {
		t.Fatalf("%s: link: %v\n%s", cc, err, out)
	}
	h, err := purego.Dlopen(lib, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	return h
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
