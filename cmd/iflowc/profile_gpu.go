//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/binary"
	"github.com/iflowc/iflowc/runtime/kit/destination"
)

// runOnGPU compiles the model for GPUs, runs the binary's tune, and writes the
// profile.
func (c *profileCmd) runOnGPU(ctx context.Context) error {
	if c.Threads != 0 || c.ISA != "" || c.Types != "" {
		return usageError{fmt.Errorf("--threads, --isa and --types are for CPUs; omit them with --target %s", c.Target)}
	}
	dir, err := os.MkdirTemp("", "iflowc-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, file := filepath.Join(dir, "model"), filepath.Join(dir, "profile")
	o := c.options()
	bar := newProgress()
	defer bar.done()
	o.Target, o.CC, o.ISA, o.Out, o.Progress = c.Target, c.CC, "portable", bin, bar.build
	m, err := compiler.Open(ctx, c.Spec, o)
	if err != nil {
		return err
	}
	defer m.Close()
	if c.Out == "" {
		c.Out = m.Spec.Name + binary.GPUProfile
	}
	if err := destination.Check("-o", c.Out); err != nil {
		return usageError{err}
	}
	p, err := m.Generate(ctx)
	if err != nil {
		return err
	}
	if _, err := p.Build(ctx); err != nil {
		return err
	}
	args := []string{"tune", "--device", "cuda", "-o", file, "--budget", c.Budget.String()}
	if c.Rows != "" {
		args = append(args, "--rows", c.Rows)
	}
	tune := exec.CommandContext(ctx, bin, args...)
	tune.Stderr = os.Stderr
	if err := tune.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return usageError{fmt.Errorf("measuring on the GPU failed: %w; see the output above", err)}
	}
	measured, err := dispatch.Read(file)
	if err != nil {
		return err
	}
	return c.deliver(measured)
}
