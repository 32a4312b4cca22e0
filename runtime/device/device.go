//go:build unix

package device

import "errors"

// A Device computes a model's steps elsewhere than on the processor's threads.
// It has the model's code and knows the shapes of its graphs.
type Device interface {
	Name() string
	StateBytes(pages int) int64
	ArenaBytes(maxTokens, maxWanted, maxSeqs int) int64
	// Open takes the weights and makes room for the shapes of the Config.
	Open(cfg *Config) (DeviceModel, error)
}

// A DeviceModel is a model on a device, ready to run steps.
type DeviceModel interface {
	// Run computes the step that stands in the context's arrays and fills its
	// outputs.
	Run(c *Context, s DeviceStep) error
	CopyPage(to, from int32) error
	// MoveRow copies a state row: page and row in it, in every state.
	MoveRow(toPage, toRow, fromPage, fromRow int) error
	Close()
}

// A DeviceStep is how much of a context's arrays a step uses.
type DeviceStep struct {
	Entry, Tokens, Wanted, Seqs int
	Types                       bool     // the token types mean something
	Sources                     bool     // so do the arrays of sources
	MaskWords                   int      // words a token in Mask; 0: no tree
	Mask                        []uint64 // [Tokens · MaskWords]
}

// A Partial is a Device whose memory is not what the manifest of the model says:
// this process holds some ranks of a partitioned model.
type Partial interface {
	Device
	// Memory is the bytes of the weights here, and of a page of the state.
	Memory() (weights, page int64)
}

// A GraphModel is a DeviceModel that keeps small steps as graphs, each launched at
// once.
type GraphModel interface {
	DeviceModel
	// KeptGraphs is how many there are, and how many steps have run as such.
	KeptGraphs() (kept, steps int64)
}

// Graphs is what a GraphModel says of its graphs; nothing elsewhere.
func (c *Context) Graphs() (kept, steps int64) {
	if m, ok := c.on.(GraphModel); ok {
		return m.KeptGraphs()
	}
	return 0, 0
}

// Memory is what a model on a Partial device takes in this process.
func (l *Library) Memory() (weights, page int64, ok bool) {
	p, ok := l.device.(Partial)
	if ok {
		weights, page = p.Memory()
	}
	return weights, page, ok
}

// OnDevice is the library of a model whose steps a device computes.
func OnDevice(d Device) *Library { return &Library{ISA: d.Name(), device: d} }

// startDevice is Start for a device: the arrays of a step stay here, everything
// else is there.
func (l *Library) startDevice(cfg *Config) (*Context, error) {
	c := &Context{lib: l, pages: int64(cfg.Pages), pageBytes: cfg.PageBytes, threads: cfg.Threads, state: &Region{}, arena: &Region{}}
	var measure slab
	(&Context{state: c.state, arena: c.arena}).lay(&measure, cfg)
	var err error
	if c.slab, err = Map(measure.at+64, "arrays of a step"); err != nil {
		return nil, err
	}
	c.lay(&slab{bytes: c.slab.Bytes}, cfg)
	if c.on, err = l.device.Open(cfg); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// runDevice is Run on a device.
func (c *Context) runDevice() error { return c.on.Run(c, c.deviceStep()) }

var errNoCalibration = errors.New("calibration runs on the processor: choose --device cpu")
