package compiler

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/iflowc/iflowc/codegen/toolchain"
)

// Cached compiles to a binary in the build cache, unless it exists, and returns
// its path.
func Cached(ctx context.Context, spec string, opt Options) (string, error) {
	cache, err := toolchain.Dir("")
	if err != nil {
		return "", err
	}
	opt.Out = filepath.Join(cache, "run") // until the program is known
	p, err := calibratedProgram(ctx, spec, opt)
	if err != nil {
		return "", err
	}
	defer p.Close()
	dir := filepath.Join(cache, "run", toolchain.Key(p.whole.CPU.Step, p.Spec.ModelDir, p.calibration.Digest(), fmt.Sprint(p.merged))[:16])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	p.opt.Out, p.opt.inCache = filepath.Join(dir, "model"), true
	_, err = p.Build(ctx)
	return p.opt.Out, err
}
