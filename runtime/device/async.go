//go:build unix

package device

import (
	"errors"
	"time"
	"unsafe"
)

// An AsyncModel is a DeviceModel that takes further steps while earlier ones
// run: the stages of a pipeline each work at a step of their own. Steps end in
// the order in which they began. CopyPage and MoveRow may come while steps run
// that do not use the pages.
type AsyncModel interface {
	DeviceModel
	// Stages is how many steps can be worked at at once.
	Stages() int
	// Begin starts the step that stands in the context's arrays, which stay as
	// they are until wait has returned. wait is called once; it fills the outputs.
	Begin(c *Context, s DeviceStep) (wait func() error, err error)
	// Busy is the time that each stage has computed since the model was opened;
	// nil: not known.
	Busy() []time.Duration
}

// A sharer is the device of a further context: it ends with the first one.
type sharer struct {
	AsyncModel
	first *Context
}

func (sharer) Close() {}

// Stages is how many steps, each in a context of its own, can be worked at at
// once; 1 of a model that is no pipeline.
func (c *Context) Stages() int {
	if a, ok := c.on.(AsyncModel); ok {
		return a.Stages()
	}
	return 1
}

// Busy is the time that each stage has computed; nil: not known.
func (c *Context) Busy() []time.Duration {
	if a, ok := c.on.(AsyncModel); ok {
		return a.Busy()
	}
	return nil
}

// Another gives one more set of step arrays on the same model and state, of the
// same lengths. It must be closed before the first.
func (c *Context) Another() (*Context, error) {
	a, ok := c.on.(AsyncModel)
	if !ok {
		return nil, errors.New("bug: a second step at once on a model that computes one after the other")
	}
	cfg := Config{
		Threads: c.threads, Pages: len(c.Page), MaxTokens: len(c.ID), MaxWanted: len(c.Want), MaxSeqs: len(c.Past),
		MaskWords: c.MaskWords,
	}
	for _, o := range c.Out {
		cfg.Outputs = append(cfg.Outputs, Array{Rows: 1, Cols: len(o)})
	}
	n := &Context{lib: c.lib, pages: c.pages, pageBytes: c.pageBytes, threads: c.threads, state: &Region{}, arena: &Region{}}
	var measure slab
	(&Context{state: n.state, arena: n.arena}).lay(&measure, &cfg)
	var err error
	if n.slab, err = Map(measure.at+64, "arrays of a further step"); err != nil {
		return nil, err
	}
	n.lay(&slab{bytes: n.slab.Bytes}, &cfg)
	n.on = sharer{a, c}
	return n, nil
}

// Begin starts a step as Run does, and returns what waits for its end: the
// arrays must stay as they are until then. Where the model computes one step
// after the other, it is computed before Begin returns.
func (c *Context) Begin(entry, tokens, wanted, seqs int, types bool) (wait func() error, err error) {
	a, ok := c.on.(AsyncModel)
	if !ok {
		err := c.Run(entry, tokens, wanted, seqs, types)
		return func() error { return err }, nil
	}
	failed := c.copyFailed
	if s, ok := c.on.(sharer); ok {
		failed = s.first.copyFailed
	}
	if failed != nil {
		return nil, failed
	}
	h := c.step
	h.entry, h.tokens, h.wanted, h.seqs, h.types = int32(entry), int32(tokens), int32(wanted), int32(seqs), nil
	if types {
		h.types = pointer(c.Types)
	}
	return a.Begin(c, c.deviceStep())
}

// deviceStep is how much of the arrays the step that is set uses.
func (c *Context) deviceStep() DeviceStep {
	h := c.step
	s := DeviceStep{Entry: int(h.entry), Tokens: int(h.tokens), Wanted: int(h.wanted), Seqs: int(h.seqs), Types: h.types != nil, MaskWords: int(h.maskWords)}
	if s.MaskWords > 0 && h.mask != nil {
		s.Mask = unsafe.Slice((*uint64)(h.mask), s.Tokens*s.MaskWords)
	}
	return s
}
