package compiler

import (
	"context"
	"os"
	"path/filepath"

	"github.com/iflowc/iflowc/codegen/toolchain"
)

// Cached compiles to a binary in the build cache, unless it exists, and returns
// its path.
func Cached(ctx context.Context, spec string, opt Options) (string, error) {
	m, err := Open(spec, opt)
	if err != nil {
		return "", err
	}
	defer m.Close()
	p, err := m.Generate(ctx)
	if err != nil {
		return "", err
	}
	cache, err := toolchain.Dir("")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "run", toolchain.Key(p.whole.CPU.Step, p.Spec.ModelDir)[:16])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	p.opt.Out = filepath.Join(dir, "model")
	_, err = p.Build(ctx)
	return p.opt.Out, err
}
