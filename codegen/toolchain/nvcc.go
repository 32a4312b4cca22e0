package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/regular"
	"github.com/iflowc/iflowc/runtime/kit/wheels"
)

// A GPUArch is a GPU architecture for which fatbins contain machine code.
type GPUArch struct {
	Name string // "sm_90a"
	Doc  string
}

// GPUArchs are the default architectures of the CUDA target. Fatbins also contain the
// PTX of the first one, for newer GPUs.
var GPUArchs = []GPUArch{
	{"sm_80", "A100, A30"},
	{"sm_86", "GeForce 30, A10, A40"},
	{"sm_89", "GeForce 40, L4, L40"},
	{"sm_90a", "H100, H200"},
	{"sm_100", "B200"},
}

// leastNVCC is the oldest release of nvcc that supports all GPUArchs.
const leastNVCC = "CUDA 12.8"

// nvccWheels are the PyPI packages of nvcc and its dependencies. All are pinned, because
// different releases are incompatible with each other.
var nvccWheels = []string{
	"nvidia-cuda-nvcc==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-nvvm==13.0.88",
	"nvidia-cuda-runtime==13.0.96", "nvidia-cuda-cccl==13.0.85",
}

// NVCCHint returns the command that installs nvcc without a CUDA installation.
func NVCCHint() string {
	return "python3 -m venv .cuda && .cuda/bin/pip install --no-deps " + strings.Join(nvccWheels, " ")
}

// FindNVCC returns nvcc: from $CUDA_HOME (or $CUDA_PATH), else the path, else
// Python packages, else /usr/local/cuda.
func FindNVCC(ctx context.Context) (*Compiler, error) {
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if home := os.Getenv(v); home != "" {
			c, err := probe(ctx, filepath.Join(home, "bin", "nvcc"), nil)
			if err != nil {
				return nil, fmt.Errorf("nvcc of $%s: %w; name a CUDA installation, or unset it", v, err)
			}
			return c, nil
		}
	}
	if path, err := exec.LookPath("nvcc"); err == nil {
		return probe(ctx, path, nil)
	}
	for _, path := range append(wheels.Find("nvidia/cu13/bin/nvcc"), "/usr/local/cuda/bin/nvcc") {
		if regular.Has(path) {
			return probe(ctx, path, nil)
		}
	}
	return nil, errors.New("nvcc not found (looked in $CUDA_HOME, on the path, in PyPI's wheels, in /usr/local/cuda); " + leastNVCC + " or newer, or: " + NVCCHint())
}

// Gencode returns nvcc's flags for machine code of some GPUs and PTX of the oldest. GPUs
// before sm_90a share one run of nvcc's front end for the oldest of them, which dominates
// the time. The templates use features of sm_90a, and some sm_100 must not run.
func Gencode(archs []string) (flags []string) {
	var groups [3][]string
	for _, a := range GPUArchs {
		if !slices.Contains(archs, a.Name) {
			continue
		}
		n := 0
		switch a.Name {
		case "sm_90a":
			n = 1
		case "sm_100":
			n = 2
		}
		groups[n] = append(groups[n], a.Name)
	}
	for _, codes := range groups {
		if len(codes) == 0 {
			continue
		}
		virtual := "compute_" + strings.TrimPrefix(codes[0], "sm_")
		if len(flags) == 0 && !strings.HasSuffix(virtual, "a") {
			codes = append(codes, virtual)
		}
		flags = append(flags, "-gencode", "arch="+virtual+",code=["+strings.Join(codes, ",")+"]")
	}
	return flags
}

// Fatbins compiles CUDA units with b.CC, an nvcc, several at a time, and returns
// the fatbins' paths in the units' order.
func (b *Builder) Fatbins(ctx context.Context, units []Unit, archs []string) ([]string, error) {
	flags := Gencode(archs)
	return b.each(ctx, units, func(ctx context.Context, u Unit) (string, error) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		u.Flags = append(slices.Clone(u.Flags), flags...)
		return b.Cache.Make("fatbin", b.unitKey(u), ".fatbin", func(dir, out string) error {
			if err := u.write(dir); err != nil {
				return err
			}
			args := append(slices.Clone(u.Flags), "-I.", "-fatbin", filepath.Base(u.Name), "-o", filepath.Base(out))
			if err := b.CC.run(ctx, dir, args...); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return fmt.Errorf("compiling %s: %w", u.Name, err)
			}
			if data, err := os.ReadFile(out); err != nil || !bytes.HasPrefix(data, []byte(fatbinMagic)) {
				return fmt.Errorf("compiling %s: %s succeeded but left no fatbin; reinstall it, or set $CUDA_HOME to another CUDA installation", u.Name, b.CC.Path)
			}
			return nil
		})
	})
}

// fatbinMagic is the magic number at the start of a fatbin.
const fatbinMagic = "\x50\xed\x55\xba"
