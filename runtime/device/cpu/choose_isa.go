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

// ChooseISA returns the index of the library to load: the one for isa (else for
// $IFLOWC_ISA), else the first of libs for which the CPU supports all features. libs
// are ordered from best to worst.
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
				return 0, fmt.Errorf("instruction set %q: this CPU lacks %s; unset IFLOWC_ISA to choose automatically", isa, missing)
			}
			return i, nil
		}
		built = append(built, l.ISA)
		why = append(why, l.ISA+" needs "+missing)
	}
	if isa != "" {
		return 0, fmt.Errorf("instruction set %q is not in this binary; it holds %s", isa, strings.Join(built, ", "))
	}
	return 0, fmt.Errorf("no library in this binary runs on this CPU (%s); compile the model with --isa portable", strings.Join(why, "; "))
}

// Missing returns the CPU features in needs that this CPU lacks.
func Missing(needs []string) []string { return lacking(needs, hasFeature) }

func lacking(needs []string, has func(string) bool) (list []string) {
	for _, n := range needs {
		if !has(n) {
			list = append(list, n)
		}
	}
	return list
}

// hasFeature reports whether this CPU supports a feature. Names are the fields of
// golang.org/x/sys/cpu without "Has", such as "AVX512VNNI" or "ASIMDDP".
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
