//go:build unix

package cuda

import (
	"slices"
	"sync"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// A Device is a compiled model together with the GPU that runs it.
type Device struct {
	GPU      *GPU
	Manifest *manifest.Manifest
	Plan     *manifest.CUDA
	Files    map[string]string       // images by file name
	Images   string                  // folder with images that replace some of Files; "": none
	Graphs   bool                    // capture small steps as CUDA graphs
	Host     Host                    // data that stays in host memory
	Progress func(done, total int64) // reports the upload of the weights; may be nil
	// Profile selects the kernels of matmuls by row count; nil: use an estimate.
	Profile *dispatch.Profile
	BLAS    BLASChoice
	// OpenLink connects to the ranks on other GPUs. It is called on the thread that
	// starts the model. nil: send rows to other ranks through the host.
	OpenLink func() (Link, error)
	Notice   func(format string, args ...any) // reports a choice to the user; may be nil

	kernels   []kernel // of the plan, after loading
	measuring bool     // any implementation may run
	choosing  sync.Once
	choice    *choice
	choiceErr error
}

var _ device.Device = (*Device)(nil)

// Info returns the GPU's name, the sizes of pages and cells, and the bandwidth;
// Config.Weights holds the weights.
func (d *Device) Info() device.Info {
	return device.Info{Name: d.GPU.Name, InFlight: 1, PageBytes: d.kvBytes(1), CellBytes: d.cellBytes(1), OwnMemory: true, ReadGBs: d.readGBs()}
}

// FreeBytes returns the GPU's free memory in bytes; 0: it is unknown.
func (d *Device) FreeBytes() int64 {
	n, err := d.GPU.Available()
	if err != nil {
		return 0
	}
	return n
}

// readGBs returns the GPU's read bandwidth: the median of the profile's measurements,
// else the product of memory clock and bus width, else 0.
func (d *Device) readGBs() float64 {
	if d.Profile != nil && d.Profile.Machine != nil && len(d.Profile.Machine.ReadGBs) > 0 {
		measured := slices.Sorted(slices.Values(d.Profile.Machine.ReadGBs))
		return measured[len(measured)/2]
	}
	return d.GPU.peakBytes() / 1e9
}

// Peak returns 0: it is unknown.
func (d *Device) Peak(device.Arithmetic, int, time.Duration) float64 { return 0 }

func (d *Device) notify(format string, args ...any) {
	if d.Notice != nil {
		d.Notice(format, args...)
	}
}

// Load loads the kernels once. It returns an error if the GPU or the driver is too old
// for them. Call it before expensive work.
func (d *Device) Load() (err error) {
	if d.kernels != nil {
		return nil
	}
	if err := d.GPU.enter(); err != nil {
		return err
	}
	defer d.GPU.leave()
	images, err := d.images()
	if err != nil {
		return err
	}
	d.kernels, err = d.GPU.loadKernels(d.Plan, images)
	return err
}

// Start allocates memory on the GPU and uploads the weights.
func (d *Device) Start(cfg *device.Config) (device.Context, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m, err := d.open(cfg)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (d *Device) open(cfg *device.Config) (*model, error) {
	if err := d.Load(); err != nil {
		return nil, err
	}
	if err := d.GPU.enter(); err != nil {
		return nil, err
	}
	defer d.GPU.leave()
	c, err := d.chosen()
	if err != nil {
		return nil, err
	}
	s := d.sizes(cfg)
	if err := d.fits(cfg, &s); err != nil {
		return nil, err
	}
	m := &model{Device: d, cfg: *cfg, choice: c, transport: noTransport{}, graphs: map[shape][]graph{}}
	m.paged, m.celled = d.Manifest.PageBytes() != nil, d.Manifest.CellBytes() != nil
	m.adapters.changed = make([]bool, len(d.Plan.Adapted))
	m.moves.launches, m.cellMoves.launches = d.Plan.Moves, d.Plan.CellMoves
	if err := m.open(cfg, &s); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}
