package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/binary"
)

// runOnGPU compiles the model for GPUs, lets the binary measure its products on
// one, and writes the profile.
func (c *profileCmd) runOnGPU(ctx context.Context) error {
	if c.Threads != 0 || c.ISA != "" || c.Types != "" {
		return usageError{fmt.Errorf("--threads, --isa and --types are for processors: leave them out with --target %s", c.Target)}
	}
	p, err := (&compileFlags{modelFlags: c.modelFlags, Target: c.Target, CC: c.CC, ISA: "portable"}).generate()
	if err != nil {
		return err
	}
	defer p.m.set.Close()
	if c.Out == "" {
		c.Out = p.m.Spec.Name + binary.GPUProfile
	}
	dir, err := os.MkdirTemp("", "iflowc-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, file := filepath.Join(dir, "model"), filepath.Join(dir, "profile")
	if _, err := p.build(ctx, "binary", bin); err != nil {
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
		return usageError{fmt.Errorf("measuring on the GPU failed: %w; what is above says why", err)}
	}
	measured, err := dispatch.Read(file)
	if err != nil {
		return err
	}
	return c.deliver(measured)
}
