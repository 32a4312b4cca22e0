package compiler

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/templates"
)

// CFlags are the flags of every generated translation unit besides those of its
// instruction set. Tests compile with warnings as errors; here a new warning
// must not prevent a build.
var CFlags = []string{"-fPIC", "-Wall", "-Wextra"}

// A library is a model's step compiled for one instruction set.
type library struct {
	isa  templates.ISA
	path string
}

// libraries compiles and links the step and its kernels for each instruction
// set of the target architecture.
func libraries(ctx context.Context, b *toolchain.Builder, m *codegen.CPUModel, isas []templates.ISA) ([]library, error) {
	headers := map[string][]byte{}
	for name, text := range templates.Headers() {
		headers[name] = []byte(text)
	}
	var units []toolchain.Unit
	per := 0
	for _, isa := range isas {
		us, err := unitsFor(m, isa, headers)
		if err != nil {
			return nil, err
		}
		per = len(us)
		units = append(units, us...)
	}
	objects, err := b.Objects(ctx, units)
	if err != nil {
		return nil, err
	}
	var libs []library
	for i, isa := range isas {
		path, err := b.Shared(ctx, objects[i*per:(i+1)*per], []string{"-lm", "-lpthread"})
		if err != nil {
			return nil, err
		}
		libs = append(libs, library{isa, path})
	}
	return libs, nil
}

// unitsFor lists the translation units of one library.
func unitsFor(m *codegen.CPUModel, isa templates.ISA, headers map[string][]byte) ([]toolchain.Unit, error) {
	flags := append(slices.Clone(CFlags), isa.Flags...)
	units := []toolchain.Unit{
		{Name: "step.c", Source: []byte(m.Step), Headers: headers, Flags: flags},
		{Name: "pool.c", Source: []byte(templates.ThreadPool()), Headers: headers, Flags: flags},
		{Name: "probe.c", Source: []byte(codegen.Probe()), Flags: flags},
		{Name: "probe_matmul.c", Source: []byte(templates.MatmulProbe()), Headers: headers, Flags: flags},
	}
	if m.Traffic != nil { // one of several ranks
		for _, src := range templates.Comm() {
			units = append(units, toolchain.Unit{Name: src.Name, Source: []byte(src.Text), Headers: headers, Flags: flags})
		}
	}
	for _, k := range m.Kernels {
		src, err := k.Source(k.Type, isa.Name)
		if err != nil {
			return nil, err
		}
		units = append(units, toolchain.Unit{Name: k.Symbol(k.Type) + ".c", Source: []byte(src), Headers: headers, Flags: flags})
	}
	return units, nil
}

// pickISAs chooses the instruction sets to build, best first, of a model with
// activations of type act.
func pickISAs(list, act string) ([]templates.ISA, error) {
	arch := runtime.GOARCH
	if a := os.Getenv("GOARCH"); a != "" {
		arch = a
	}
	var have []string
	var out []templates.ISA
	for _, isa := range templates.ISAsFor(act) {
		if isa.Arch != "" && isa.Arch != arch {
			continue
		}
		have = append(have, isa.Name)
		if list == "" || slices.Contains(strings.Split(list, ","), isa.Name) {
			out = append(out, isa)
		}
	}
	if len(out) == 0 {
		return nil, InputError{fmt.Errorf("--isa %s: none of these for %s (have: %s)", list, arch, strings.Join(have, ", "))}
	}
	return out, nil
}

// ISAHere returns the named instruction set, or the best of this CPU.
func ISAHere(name string) (templates.ISA, error) {
	isas, err := pickISAs(name, "")
	if err != nil {
		return templates.ISA{}, err
	}
	for _, isa := range isas {
		if len(cpu.Missing(isa.Needs)) == 0 {
			return isa, nil
		}
	}
	return templates.ISA{}, InputError{fmt.Errorf("--isa %s: this CPU lacks %v", name, cpu.Missing(isas[0].Needs))}
}
