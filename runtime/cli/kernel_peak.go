//go:build unix

package cli

import (
	"context"
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/device/tune"
)

// cachedBytes is the size of the weights that a kernel's peak is measured with, per
// thread, or of two panels if those are larger. With the activations they fit into the L2
// cache of every server CPU since 2019 (at least 512 KB).
const cachedBytes = 192 << 10

// kernelOf names what determines a matmul kernel's peak: the types of weights and
// activations.
func kernelOf(weights, activations string) string { return weights + "/" + activations }

// kernelPeaks measures the highest speed of each kind of matmul kernel that a model has,
// in GOP/s of all threads, with weights in the cache.
func kernelPeaks(ctx context.Context, lib *cpu.Library, matmuls []manifest.Matmul, threads int) (map[string]float64, error) {
	shapes, err := tune.MatmulShapes(matmuls)
	if err != nil {
		return nil, err
	}
	each := int64(cachedBytes)
	for _, s := range shapes {
		each = max(each, 2*s.PanelBytes)
	}
	d, err := tune.OpenLibrary(lib, threads, int64(threads)*each)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	peaks, seen := map[string]float64{}, map[string]bool{}
	for _, s := range shapes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		what := fmt.Sprint(s.DType, s.Act, s.K) // the number of columns does not matter
		if seen[what] {
			continue
		}
		seen[what] = true
		gops, err := d.Peak(s)
		if err != nil {
			return nil, fmt.Errorf("measuring the peak of %s: %w", s, err)
		}
		key := kernelOf(s.DType, tune.ActKinds[s.Act])
		peaks[key] = max(peaks[key], gops)
	}
	return peaks, nil
}
