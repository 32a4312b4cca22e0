//go:build unix

package cuda

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// imageSuffixes are the suffixes of files that replace images, in the order in which
// they are looked for.
var imageSuffixes = []string{".cubin", ".fatbin", ".ptx"}

// An image is the kernels of a unit, as the driver loads them.
type image struct {
	unit, data string
	path       string // file that replaces the binary's image; "": none does
}

// images returns the images of the plan. Files of the folder Images, if it is set,
// replace images of the binary by the name of their unit.
func (d *Device) images() ([]image, error) {
	if d.Images != "" {
		if st, err := os.Stat(d.Images); err != nil || !st.IsDir() {
			return nil, fmt.Errorf("%s is not a folder with images of kernels", d.Images)
		}
	}
	var out []image
	var replaced []string
	for _, i := range d.Plan.Images {
		if i.Compute != 0 && i.Compute != d.GPU.Compute {
			continue
		}
		one := image{unit: i.Unit, data: d.Files[i.File]}
		if d.Images != "" {
			if err := one.replace(d.Images); err != nil {
				return nil, err
			}
		}
		if one.path != "" {
			replaced = append(replaced, filepath.Base(one.path))
		}
		if one.data == "" {
			return nil, fmt.Errorf("bug: the binary lacks the CUDA image %s", i.File)
		}
		out = append(out, one)
	}
	if d.Images != "" {
		d.notify("kernels from %s: %s", d.Images, strings.Join(append(replaced, fmt.Sprintf("%d of %d units", len(replaced), len(out))), ", "))
	}
	return out, nil
}

// replace reads the file of a folder that replaces the image, if there is one. A single
// image of all units has the name kernels.
func (i *image) replace(dir string) error {
	name := i.unit
	if name == "" {
		name = "kernels"
	}
	for _, suffix := range imageSuffixes {
		path := filepath.Join(dir, name+suffix)
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && len(data) == 0 {
			err = fmt.Errorf("%s is empty", path)
		}
		i.path, i.data = path, string(data)
		if suffix == ".ptx" {
			i.data += "\x00" // the driver reads text to its end
		}
		return err
	}
	return nil
}

// refused describes the driver's error for an image.
func (g *GPU) refused(i *image, err error) error {
	var e *Error
	known := errors.As(err, &e)
	switch {
	case i.path != "":
		return fmt.Errorf("%s: %s does not load it: %w", i.path, g.Name, err)
	case known && e.Code == codeNoBinary:
		return fmt.Errorf("%s (compute capability %d.%d) is older than the model's target architecture; compile the model with --arch sm_%d", g.Name, g.Compute/10, g.Compute%10, g.Compute)
	case known && (e.Code == codeInvalidImage || e.Code == codeUnsupportedPTX):
		return fmt.Errorf("the driver (CUDA %d.%d) cannot load the model's kernels (%s): it is older than the nvcc that compiled them; install a newer driver", g.Version/1000, g.Version%1000/10, e.Name)
	}
	return fmt.Errorf("loading the kernels of %s on %s: %w", i.unit, g.Name, err)
}

// loadImages loads the images and returns the driver's modules by unit.
func (g *GPU) loadImages(images []image) (map[string]uintptr, error) {
	modules := map[string]uintptr{}
	for _, i := range images {
		m, err := g.loadImage(i.data)
		if err != nil {
			return nil, g.refused(&i, err)
		}
		modules[i.unit] = m
	}
	return modules, nil
}

// moduleOf returns the module with the kernel: its unit's, or the single one.
func moduleOf(modules map[string]uintptr, k manifest.CUDAKernel) (uintptr, error) {
	if m, ok := modules[k.Unit]; ok {
		return m, nil
	}
	if m, ok := modules[""]; ok {
		return m, nil
	}
	return 0, fmt.Errorf("bug: no CUDA image for the unit %s", k.Unit)
}
