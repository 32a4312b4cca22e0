package compiler

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/iflowc/iflowc/codegen/toolchain"
)

// calibrated compiles the model in its stored types, runs that binary's calibrate
// on opt.Calibrate, and returns options that name the importance matrix, which
// stays in the cache. Without a text it returns opt unchanged.
func calibrated(ctx context.Context, spec string, opt Options) (Options, error) {
	text, feedback := opt.Calibrate, opt.Feedback
	if text == "" {
		return opt, nil
	}
	if opt.Importance != "" {
		return opt, InputError{fmt.Errorf("--calibrate and --importance exclude each other")}
	}
	data, err := os.ReadFile(text)
	if err != nil {
		return opt, InputError{err}
	}
	stored := opt
	stored.Quant, stored.Target, stored.Emit, stored.EmbedWeights, stored.NoWeights, stored.KeepSources = "", "cpu", "", false, false, ""
	m, err := Open(spec, stored)
	if err != nil {
		return opt, err
	}
	defer m.Close()
	if err := opt.checkOutputs(cmp.Or(opt.Out, defaultOut(m.Spec.Name, opt.Emit))); err != nil {
		return opt, err // before calibration, which takes minutes
	}
	p, err := m.Generate(ctx)
	if err != nil {
		return opt, err
	}
	p.ranks = nil // calibrate on one device
	opt.Importance, err = p.importance(ctx, text, data, feedback)
	return opt, err
}

// importance builds the program and runs its calibrate on a text, unless the cache
// has the result. It returns the importance matrix's path.
func (p *Program) importance(ctx context.Context, text string, data []byte, feedback bool) (string, error) {
	cache, err := toolchain.OpenCache("")
	if err != nil {
		return "", err
	}
	defer cache.Close()
	dir := filepath.Join(cache.Dir, "calibrate", toolchain.Key(p.whole.CPU.Step, p.Spec.ModelDir, string(data))[:16])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	out := filepath.Join(dir, "importance")
	if feedback {
		out += "-feedback"
	}
	if _, err := os.Stat(out); err == nil {
		cache.Use(out)
		return out, nil
	}
	p.opt.Out = filepath.Join(dir, "model")
	if _, err := p.Build(ctx); err != nil {
		return "", err
	}
	args := []string{"calibrate", text, "-o", out}
	if feedback {
		args = append(args, "--feedback")
	}
	cmd := exec.CommandContext(ctx, p.opt.Out, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("calibrating on %s: %w", text, err)
	}
	return out, nil
}
