//go:build unix

package cuda

import (
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A choice says which implementation computes each matmul at each number of
// rows: [site][dispatch.Rows] indices of the site's implementations.
type choice struct {
	table []byte
	blas  *blas // nil: there is no cuBLASLt
}

// Names of the implementations that multiply 16-bit matrices.
const (
	implGemm   = "gemm"
	implCublas = "cublaslt"
)

// chosen makes the choice, once: by the profile, and for shapes that it lacks by
// an estimate. Where cuBLASLt is absent the model's own kernel stands in for it.
func (d *Device) chosen() (*choice, error) {
	d.choosing.Do(func() { d.choice, d.choiceErr = d.choose() })
	return d.choice, d.choiceErr
}

func (d *Device) choose() (*choice, error) {
	c := &choice{}
	var missing error
	if slices.ContainsFunc(d.Plan.Sites, func(s manifest.Matmul) bool { return slices.Contains(s.Impls, implCublas) }) {
		c.blas, missing = openBLAS(d.GPU.Driver, d.BLAS)
	}
	sites := slices.Clone(d.Plan.Sites)
	for i := range sites {
		sites[i].Rows = d.GPU.estimate(&sites[i], c.blas != nil)
	}
	var err error
	if c.table, err = dispatch.Table(sites, d.Profile); err != nil {
		return nil, err
	}
	if g := d.Profile; g.OfGPU() && g.Machine.GPU.Name != d.GPU.Name {
		d.notify("the profile was measured on another GPU, %s: measure this one, %s, with the verb tune", g.Machine.GPU.Name, d.GPU.Name)
	}
	if c.blas == nil && c.without(sites) {
		missing = nil // the profile wanted it: say so
		d.notify("the profile of %s was measured with cuBLASLt, which is missing here: the model's own kernels compute those matmuls", d.GPU.Name)
	}
	if missing != nil && d.BLAS != noBLAS {
		d.notify("%v: the model's own kernels compute matmuls of many rows", missing)
	}
	return c, nil
}

// without puts the model's own kernel in the place of cuBLASLt; false: there was
// nothing to do.
func (c *choice) without(sites []manifest.Matmul) (changed bool) {
	for i := range sites {
		own, blas := slices.Index(sites[i].Impls, implGemm), slices.Index(sites[i].Impls, implCublas)
		row := c.row(i)
		for r := range row {
			if blas >= 0 && row[r] == byte(blas) {
				row[r], changed = byte(own), true
			}
		}
	}
	return changed
}

func (c *choice) row(site int) []byte { return c.table[site*dispatch.Rows:][:dispatch.Rows] }

// of is the implementation of a site for so many rows.
func (c *choice) of(site, rows int) int { return int(c.row(site)[min(rows, dispatch.Rows-1)]) }

// ever says whether a launch may run with up to so many rows.
func (c *choice) ever(l *manifest.CUDALaunch, rows int) bool {
	for r := 1; r <= min(rows, dispatch.Rows-1); r++ {
		if slices.Contains(l.Choice.Impls, c.of(l.Choice.Site, r)) {
			return true
		}
	}
	return false
}
