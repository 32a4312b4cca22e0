package cpu

import (
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// ChooseISA returns the index of the library to load: the one named isa (else
// $IFLOWC_ISA), else the first whose processor features are all here. Libs
// are ordered best first.
func ChooseISA(libs []manifest.Lib, isa string) (int, error) {
	if isa == "" {
		isa = os.Getenv("IFLOWC_ISA")
	}
	return chooseISA(libs, isa, hasFeature)
}

func chooseISA(libs []manifest.Lib, isa string, has func(string) bool) (int, error) {
	var built, why []string
	for i, l := range libs {
		missing := ""
		if lacks := lacking(l.Needs, has); len(lacks) > 0 {
			missing = lacks[0]
		}
		if l.ISA == isa || isa == "" && missing == "" {
			if missing != "" {
				return 0, fmt.Errorf("instruction set %q: this processor lacks %s; leave IFLOWC_ISA empty to choose by the processor", isa, missing)
			}
			return i, nil
		}
		built = append(built, l.ISA)
		why = append(why, l.ISA+" needs "+missing)
	}
	if isa != "" {
		return 0, fmt.Errorf("instruction set %q is not in this binary; it holds %s", isa, strings.Join(built, ", "))
	}
	return 0, fmt.Errorf("no library in this binary runs on this processor (%s); compile the model with --isa portable", strings.Join(why, "; "))
}

// Missing lists the processor features of needs that are not here.
func Missing(needs []string) []string { return lacking(needs, hasFeature) }

func lacking(needs []string, has func(string) bool) (list []string) {
	for _, n := range needs {
		if !has(n) {
			list = append(list, n)
		}
	}
	return list
}

// hasFeature says whether this processor has a feature, by the name that
// golang.org/x/sys/cpu gives it without "Has": "AVX512VNNI", "ASIMDDP".
func hasFeature(name string) bool {
	var features any
	switch runtime.GOARCH {
	case "amd64":
		features = cpu.X86
	case "arm64":
		features = cpu.ARM64
	default:
		return false
	}
	f := reflect.ValueOf(features).FieldByName("Has" + name)
	return f.IsValid() && f.Kind() == reflect.Bool && f.Bool()
}
