//go:build unix

package cuda

import (
	"sync"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// A Device is a compiled model together with the GPU that is to run it.
type Device struct {
	GPU      *GPU
	Manifest *manifest.Manifest
	Plan     *manifest.CUDA
	Files    map[string]string       // images by name
	Graphs   bool                    // small steps are captured and run again as CUDA graphs
	Host     Host                    // what stays in the host's memory
	Progress func(done, total int64) // of uploading the weights; may be nil
	// Profile chooses the kernels of matmuls by the number of rows; nil: an
	// estimate does.
	Profile *dispatch.Profile
	BLAS    BLASChoice
	// OpenLink joins the ranks on other GPUs, on the thread that starts the model;
	// nil: rows for other ranks go through the host.
	OpenLink func() (Link, error)
	Group    Group                            // where OpenLink is
	Notice   func(format string, args ...any) // tells the user of a choice; may be nil

	kernels   []kernel // of the plan, once they are loaded
	measuring bool     // every implementation may run
	choosing  sync.Once
	choice    *choice
	choiceErr error
}

var _ device.Device = (*Device)(nil)

// Info names the GPU. The weights come with the configuration.
func (d *Device) Info() device.Info {
	return device.Info{Name: d.GPU.Name, InFlight: 1, PageBytes: d.kvBytes(1)}
}

// Peak is not known.
func (d *Device) Peak(device.Arithmetic, int, time.Duration) float64 { return 0 }

func (d *Device) notify(format string, args ...any) {
	if d.Notice != nil {
		d.Notice(format, args...)
	}
}

// Load loads the kernels, once: a GPU or a driver that is too old for them shows
// here, before anything else is done.
func (d *Device) Load() (err error) {
	if d.kernels != nil {
		return nil
	}
	if err := d.GPU.enter(); err != nil {
		return err
	}
	defer d.GPU.leave()
	d.kernels, err = d.GPU.loadKernels(d.Plan, d.Files)
	return err
}

// Start makes room on the GPU and sends the weights there.
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
	m := &model{Device: d, cfg: *cfg, choice: c, transport: noTransport{}, graphs: map[shape][]uintptr{}}
	for _, list := range d.Plan.Graphs {
		m.pieces = append(m.pieces, piecesOf(list))
	}
	if err := m.open(cfg, &s); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}
