package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/iflowc/iflowc/codegen/toolchain"
)

// calibrate compiles the model in the types it is stored in, lets that binary
// read the text, and gives the path of the importance matrix it wrote. The
// matrix stays in the cache.
func (f compileFlags) calibrate(ctx context.Context, text string, feedback bool) (string, error) {
	if f.Importance != "" {
		return "", usageError{fmt.Errorf("--calibrate and --importance: give one of them")}
	}
	data, err := os.ReadFile(text)
	if err != nil {
		return "", usageError{err}
	}
	f.Quant, f.EmbedWeights, f.KeepSources, f.Target = "", false, "", "cpu"
	p, err := f.generate()
	if err != nil {
		return "", err
	}
	defer p.m.set.Close()
	p.ranks = nil // calibrating is for one device, whatever the model is compiled for
	cache, err := toolchain.OpenCache("")
	if err != nil {
		return "", err
	}
	defer cache.Close()
	dir := filepath.Join(cache.Dir, "calibrate", toolchain.Key(p.cpu.Step, p.m.Spec.ModelDir, string(data))[:16])
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
	bin := filepath.Join(dir, "model")
	if _, err := p.build(ctx, "binary", bin); err != nil {
		return "", err
	}
	args := []string{"calibrate", text, "-o", out}
	if feedback {
		args = append(args, "--feedback")
	}
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("calibrating on %s: %w", text, err)
	}
	return out, nil
}
