package compiler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/templates"
)

// cudaFlags are nvcc's flags for every generated unit.
var cudaFlags = []string{"-std=c++20", "-O3"}

// fatbins compiles every unit for every GPU, each with its own nvcc, and
// returns the fatbins' paths by unit.
func fatbins(ctx context.Context, b *toolchain.Builder, m *codegen.CUDAModel, archs []string) (map[string]string, error) {
	nvcc, err := toolchain.FindNVCC(ctx)
	if err != nil {
		return nil, err
	}
	one := *b
	one.CC = nvcc
	images := map[string]string{}
	for _, compute := range []int{0, 90} {
		forArchs := archs
		if compute != 0 {
			forArchs = slices.DeleteFunc(slices.Clone(archs), func(a string) bool { return a != fmt.Sprintf("sm_%da", compute) })
		}
		if len(forArchs) == 0 {
			continue
		}
		units := cudaUnits(m, compute)
		paths, err := one.Fatbins(ctx, units, forArchs)
		if err != nil {
			return nil, err
		}
		for i, u := range units {
			images[strings.TrimSuffix(u.Name, ".cu")] = paths[i]
		}
	}
	return images, nil
}

// cudaUnits returns the units for all GPUs (0), or those for one compute capability.
func cudaUnits(m *codegen.CUDAModel, compute int) []toolchain.Unit {
	headers := map[string][]byte{}
	for name, text := range templates.CUDAHeaders() {
		headers[name] = []byte(text)
	}
	var units []toolchain.Unit
	for _, u := range m.Units {
		if u.Compute != compute {
			continue
		}
		units = append(units, toolchain.Unit{Name: u.Name + ".cu", Source: []byte(u.Source), Headers: headers, Flags: cudaFlags})
	}
	return units
}

// buildScript returns a shell script that compiles the units in its folder on a machine
// with a GPU, as fatbins does.
func buildScript() string {
	return `#!/bin/sh
# Compiles the kernels in this folder for the GPU of this machine, or for $ARCH, into the folder images or $1. The binary loads
# them with IFLOWC_CUDA_IMAGES=FOLDER. Other arguments are nvcc's.
set -eu
cd "$(dirname "$0")"
out=${1:-images}
[ $# = 0 ] || shift
mkdir -p "$out"
nvcc=$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
arch=${ARCH:-sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)}
[ "$arch" != sm_90 ] || arch=sm_90a
pids=
for unit in *.cu; do
  "$nvcc" ` + strings.Join(cudaFlags, " ") + ` -arch="$arch" -I. -cubin "$unit" -o "$out/${unit%.cu}.cubin" "$@" &
  pids="$pids $!"
done
for pid in $pids; do wait "$pid"; done
`
}

// gpuArchs parses --arch: names of GPU architectures; "" is all.
func gpuArchs(list string) ([]string, error) {
	var have []string
	for _, a := range toolchain.GPUArchs {
		have = append(have, a.Name)
	}
	if list == "" {
		return have, nil
	}
	archs := strings.Split(list, ",")
	for _, a := range archs {
		if !slices.Contains(have, a) {
			return nil, InputError{fmt.Errorf("--arch %s: %s is none of %s", list, a, strings.Join(have, ", "))}
		}
	}
	return archs, nil
}
