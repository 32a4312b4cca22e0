//go:build unix

package main

import (
	"context"
	"maps"
	"slices"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/templates"
)

// library compiles the kernels and the driver that times them into one shared
// library, and adds their sources and compiler to the fingerprint.
func (c *profileCmd) library(ctx context.Context, bar *progress, cat *templates.Catalog, kernels []probeKernel, machine *dispatch.Machine) (string, error) {
	isa, err := compiler.ISAHere(c.ISA)
	if err != nil {
		return "", err
	}
	cache, err := toolchain.OpenCache("")
	if err != nil {
		return "", err
	}
	defer cache.Close()
	cc, err := toolchain.FindCompiler(ctx, c.CC)
	if err != nil {
		return "", err
	}
	units, err := probeUnits(kernels, isa)
	if err != nil {
		return "", err
	}
	machine.ISA, machine.CC = isa.Name, cc.Version
	if machine.Kernels, err = hashKernels(cat, isa); err != nil {
		return "", err
	}
	b := &toolchain.Builder{Cache: cache, CC: cc, Progress: func(done, total int, name string) { bar.units("compiling", done, total, name) }}
	objects, err := b.Objects(ctx, units)
	if err != nil {
		return "", err
	}
	return b.Shared(ctx, objects, []string{"-lm", "-lpthread"})
}

// probeUnits lists the translation units of the library.
func probeUnits(kernels []probeKernel, isa templates.ISA) ([]toolchain.Unit, error) {
	headers := map[string][]byte{}
	for name, text := range templates.Headers() {
		headers[name] = []byte(text)
	}
	flags := append(slices.Clone(compiler.CFlags), isa.Flags...)
	units := []toolchain.Unit{
		{Name: "probe_matmul.c", Source: []byte(templates.MatmulProbe()), Headers: headers, Flags: flags},
		{Name: "pool.c", Source: []byte(templates.ThreadPool()), Headers: headers, Flags: flags},
	}
	for _, k := range kernels {
		src, err := k.Source(k.dtype, isa.Name)
		if err != nil {
			return nil, err
		}
		units = append(units, toolchain.Unit{Name: k.Symbol(k.dtype) + ".c", Source: []byte(src), Headers: headers, Flags: flags})
	}
	return units, nil
}

// hashKernels hashes the sources of all matmuls, the headers and the flags.
func hashKernels(cat *templates.Catalog, isa templates.ISA) (string, error) {
	parts := append(slices.Clone(compiler.CFlags), isa.Flags...)
	headers := templates.Headers()
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		parts = append(parts, name, headers[name])
	}
	for _, k := range cat.Kernels() {
		if k.Op != "matmul" {
			continue
		}
		for _, dt := range k.Types {
			src, err := k.Source(dt, isa.Name)
			if err != nil {
				return "", err
			}
			parts = append(parts, src)
		}
	}
	return toolchain.Key(parts...), nil
}
