//go:build unix

package cuda

import (
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A choice selects the implementation of each matmul at each row count: the table
// [matmul][dispatch.Rows] holds indices of the matmul's implementations.
type choice struct {
	table []byte
	blas  *blas // nil: cuBLASLt is not available
}

// Names of the implementations of 16-bit matmuls.
const (
	implGemm   = "gemm"
	implCublas = "cublaslt"
)

// chosen returns the choice, which it makes on the first call: from the profile, or
// from an estimate for shapes that the profile lacks. If cuBLASLt is missing, the
// model's own kernel replaces it.
func (d *Device) chosen() (*choice, error) {
	d.choosing.Do(func() { d.choice, d.choiceErr = d.choose() })
	return d.choice, d.choiceErr
}

func (d *Device) choose() (*choice, error) {
	c := &choice{}
	var missing error
	if slices.ContainsFunc(d.Plan.Matmuls, func(s manifest.Matmul) bool { return slices.Contains(s.Impls, implCublas) }) {
		c.blas, missing = openBLAS(d.GPU.Driver, d.BLAS)
	}
	matmuls := slices.Clone(d.Plan.Matmuls)
	for i := range matmuls {
		matmuls[i].Rows = d.GPU.estimate(&matmuls[i], func(impl string) bool { return d.Plan.Needs[impl] == 0 && (impl != implCublas || c.blas != nil) })
	}
	var err error
	if c.table, err = dispatch.Table(matmuls, d.Profile); err != nil {
		return nil, err
	}
	if g := d.Profile; g.OfGPU() && g.Machine.GPU.Name != d.GPU.Name {
		d.notify("the profile was measured on another GPU, %s: measure this one, %s, with the subcommand tune", g.Machine.GPU.Name, d.GPU.Name)
	}
	if c.blas == nil && c.without(matmuls, implCublas) {
		missing = nil // the profile selects cuBLASLt: report that it is missing
		d.notify("the profile of %s was measured with cuBLASLt, which is missing here: the model's own kernels compute those matmuls", d.GPU.Name)
	}
	for impl := range d.Plan.Needs {
		if !d.has(impl) && c.without(matmuls, impl) {
			d.notify("the profile selects %s, which %s does not have: gemm computes those matmuls", impl, d.GPU.Name)
		}
	}
	if missing != nil && d.BLAS != noBLAS {
		d.notify("%v: the model's own kernels compute matmuls of many rows", missing)
	}
	return c, nil
}

// has reports whether the GPU has an implementation of matmuls.
func (d *Device) has(impl string) bool {
	need := d.Plan.Needs[impl]
	return need == 0 || d.GPU.hasImage(d.Plan, need)
}

// without replaces an implementation by gemm. It reports whether the choice changed.
func (c *choice) without(matmuls []manifest.Matmul, impl string) (changed bool) {
	for i := range matmuls {
		own, missing := slices.Index(matmuls[i].Impls, implGemm), slices.Index(matmuls[i].Impls, impl)
		row := c.row(i)
		for r := range row {
			if missing >= 0 && row[r] == byte(missing) {
				row[r], changed = byte(own), true
			}
		}
	}
	return changed
}

func (c *choice) row(matmul int) []byte { return c.table[matmul*dispatch.Rows:][:dispatch.Rows] }

// of returns the implementation of a matmul at a row count.
func (c *choice) of(matmul, rows int) int { return int(c.row(matmul)[min(rows, dispatch.Rows-1)]) }

// ever reports whether a launch may run with any number of rows up to rows.
func (c *choice) ever(l *manifest.CUDALaunch, rows int) bool {
	for r := 1; r <= min(rows, dispatch.Rows-1); r++ {
		if slices.Contains(l.Choice.Impls, c.of(l.Choice.Matmul, r)) {
			return true
		}
	}
	return false
}
