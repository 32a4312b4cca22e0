//go:build unix

package device

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// A Config fixes the shapes of a context.
type Config struct {
	Threads int
	CPUs    []int  // processor of each thread; nil: do not pin
	Weights []byte // the packed region, outside Go's heap, 64-byte aligned
	Pages   int    // state pages of all sequences together
	// PageBytes lists the size of a page in each element of each state, in the
	// order in which they lie in memory; only CopyPage needs it.
	PageBytes []int64

	MaxTokens, MaxWanted, MaxSeqs int // of one step
	MaskWords                     int // of a token; 0: no trees
	MaxPages                      int // most page ids of a step, shared pages counted each time; 0: Pages

	Dispatch []byte  // [sites][DispatchRows]
	Outputs  []Array // the largest shape of each output of any graph that will run

	Comm unsafe.Pointer // a C ifl_comm, how one rank of a partitioned model reaches the others; nil: the model is whole
}

// An Array is the shape of a row-major float32 output.
type Array struct{ Rows, Cols int }

// A Context is a model ready to run steps. The caller fills the arrays (whose
// lengths are the maxima of the Config) and calls Run. Not safe for
// concurrent use. The thread that calls Run is one of the model's for the time
// of the step.
type Context struct {
	ID, Pos, Seq, Slot, Types []int32  // a token
	Want                      []int32  // a wanted row
	First, PageAt             []int32  // a sequence, and one more
	Past                      []int32  // a sequence
	Page                      []int32  // a page of a sequence of the step, MaxPages in all
	XPageAt, XPage, XRows     []int32  // the same of the sequences' sources, and their rows
	Mask                      []uint64 // a token: which of its sequence's tokens in the step it sees, MaskWords words; see Masked
	MaskWords                 int
	Out                       [][]float32

	best               []best // [threads][wanted]
	lib                *Library
	pages              int64
	pageBytes          []int64
	handle             uintptr
	step               *stepHeader
	view               []byte // a stepHeader for another context's steps
	state, arena, slab *Region
	seen               *Region     // sums of calibration
	moments, rows      *Region     // products of columns, and the rows they are made of meanwhile
	on                 DeviceModel // what computes the steps; nil: the library
	copyFailed         error       // of CopyPage on a device: the next Run says it
	marks              *Region     // of a trace
	traced             func(Step)
	threads            int
}

// Start maps the memory of a context and starts its threads.
func (l *Library) Start(cfg Config) (*Context, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if l.device != nil {
		return l.startDevice(&cfg)
	}
	c := &Context{lib: l, pages: int64(cfg.Pages), pageBytes: cfg.PageBytes, threads: cfg.Threads}
	if err := c.mapMemory(&cfg); err != nil {
		c.Close()
		return nil, err
	}
	config := c.lay(&slab{bytes: c.slab.Bytes}, &cfg)
	handle, _, _ := purego.SyscallN(l.open, uintptr(unsafe.Pointer(config)))
	if handle == 0 {
		c.Close()
		return nil, fmt.Errorf("starting the model: its %s library refused (step ABI %d, %d threads)", l.ISA, ABI, cfg.Threads)
	}
	c.handle = handle
	return c, nil
}

func (cfg *Config) check() error {
	for _, v := range []struct {
		name string
		n    int
	}{
		{"threads", cfg.Threads}, {"state pages", cfg.Pages}, {"tokens a step", cfg.MaxTokens},
		{"wanted rows a step", cfg.MaxWanted}, {"sequences", cfg.MaxSeqs},
	} {
		if v.n < 1 || v.n > 1<<24 {
			return fmt.Errorf("starting the model: %s must be between 1 and %d, not %d", v.name, 1<<24, v.n)
		}
	}
	if len(cfg.Outputs) > MaxOut {
		return fmt.Errorf("starting the model: %d outputs, at most %d are possible", len(cfg.Outputs), MaxOut)
	}
	if len(cfg.Weights) > 0 && uintptr(pointer(cfg.Weights))%64 != 0 {
		return errors.New("bug: weights are not 64-byte aligned")
	}
	return nil
}

// mapMemory maps state, scratch memory and the slab.
func (c *Context) mapMemory(cfg *Config) (err error) {
	bytes := c.lib.StateBytes(cfg.Pages)
	if c.state, err = Map(bytes, "state of the sequences"); err != nil {
		return err
	}
	if listed := sum(cfg.PageBytes) * int64(cfg.Pages); cfg.PageBytes != nil && listed != bytes {
		return fmt.Errorf("bug: the manifest lists %d bytes of state, the library has %d", listed, bytes)
	}
	arena := c.lib.ArenaBytes(cfg.Threads, cfg.MaxTokens, cfg.MaxWanted, cfg.MaxSeqs)
	if c.arena, err = Map(arena, "scratch memory of a step"); err != nil {
		return err
	}
	c.arena.SmallPages() // laid out for the largest step; most steps touch the head of each part
	var measure slab
	(&Context{state: c.state, arena: c.arena}).lay(&measure, cfg)
	if c.slab, err = Map(measure.at+64, "arrays of a step"); err != nil {
		return err
	}
	c.slab.SmallPages()
	return nil
}

// lay places every array of a step in s and points the headers at them. With
// a slab that has no bytes it only measures, and returns nil.
func (c *Context) lay(s *slab, cfg *Config) *configHeader {
	step := s.cut(int64(unsafe.Sizeof(stepHeader{})))
	c.view = s.cut(int64(unsafe.Sizeof(stepHeader{})))
	config := s.cut(int64(unsafe.Sizeof(configHeader{})))
	cpus := s.ints(cfg.Threads)
	dispatch := s.cut(int64(len(cfg.Dispatch)))
	c.ID, c.Pos, c.Seq = s.ints(cfg.MaxTokens), s.ints(cfg.MaxTokens), s.ints(cfg.MaxTokens)
	c.Slot, c.Types = s.ints(cfg.MaxTokens), s.ints(cfg.MaxTokens)
	c.Want = s.ints(cfg.MaxWanted)
	c.First, c.Past, c.PageAt = s.ints(cfg.MaxSeqs+1), s.ints(cfg.MaxSeqs), s.ints(cfg.MaxSeqs+1)
	pages := max(cfg.Pages, cfg.MaxPages)
	c.Page = s.ints(pages)
	c.XPageAt, c.XPage, c.XRows = s.ints(cfg.MaxSeqs+1), s.ints(pages), s.ints(cfg.MaxSeqs)
	c.MaskWords, c.Mask = cfg.MaskWords, s.words(cfg.MaxTokens*cfg.MaskWords)
	c.Out = make([][]float32, len(cfg.Outputs))
	for i, a := range cfg.Outputs {
		c.Out[i] = s.floats(int64(a.Rows) * int64(a.Cols))
	}
	c.best = view[best](s.cut(int64(cfg.Threads) * int64(cfg.MaxWanted) * 8))
	if s.bytes == nil {
		return nil
	}
	for i := range cpus {
		cpus[i] = -1
		if i < len(cfg.CPUs) {
			cpus[i] = int32(cfg.CPUs[i])
		}
	}
	copy(dispatch, cfg.Dispatch)
	c.step = (*stepHeader)(unsafe.Pointer(&step[0]))
	*c.step = stepHeader{
		abi: ABI, id: pointer(c.ID), pos: pointer(c.Pos), seq: pointer(c.Seq), slot: pointer(c.Slot),
		want: pointer(c.Want), first: pointer(c.First), past: pointer(c.Past), pageAt: pointer(c.PageAt), page: pointer(c.Page),
		xpageAt: pointer(c.XPageAt), xpage: pointer(c.XPage), xrows: pointer(c.XRows), best: pointer(c.best),
	}
	for i, o := range c.Out {
		c.step.out[i] = pointer(o)
	}
	h := (*configHeader)(unsafe.Pointer(&config[0]))
	*h = configHeader{
		abi: ABI, threads: int32(cfg.Threads), cpus: pointer(cpus),
		weights: pointer(cfg.Weights), weightsBytes: int64(len(cfg.Weights)),
		state: pointer(c.state.Bytes), pages: int32(cfg.Pages),
		maxTokens: int32(cfg.MaxTokens), maxWanted: int32(cfg.MaxWanted), maxSeqs: int32(cfg.MaxSeqs),
		arena: pointer(c.arena.Bytes), dispatch: pointer(dispatch), comm: cfg.Comm,
	}
	return h
}

// Run computes one step of a graph: the first tokens, wanted and seqs entries
// of the arrays. Token types are passed when types is set.
func (c *Context) Run(entry, tokens, wanted, seqs int, types bool) error {
	s := c.step
	for i := range c.best[:min(c.threads*max(wanted, int(s.wanted)), len(c.best))] { // of the last step, too
		c.best[i].at = none
	}
	s.entry, s.tokens, s.wanted, s.seqs = int32(entry), int32(tokens), int32(wanted), int32(seqs)
	s.types = nil
	if types {
		s.types = pointer(c.Types)
	}
	if c.on != nil {
		return errors.Join(c.copyFailed, c.runDevice())
	}
	runtime.LockOSThread()
	code, _, _ := purego.SyscallN(c.lib.run, c.handle, uintptr(unsafe.Pointer(s)))
	runtime.UnlockOSThread()
	if c.traced != nil && code == 0 {
		c.report(Step{Entry: entry, Tokens: tokens, Wanted: wanted, Seqs: seqs})
	}
	return runError(int32(code), tokens, wanted, seqs)
}

// Best is the likeliest token of a wanted row of the last step, where the graph
// has found it (manifest.Graph.Best) and all logits were finite.
func (c *Context) Best(row int) (token int32, ok bool) {
	top, wanted := best{at: none}, int(c.step.wanted)
	for m := 0; c.on == nil && m < c.threads; m++ { // the members of the team, each with some columns
		switch b := c.best[m*wanted+row]; {
		case b.at == unsure:
			return 0, false
		case b.at == none:
		case top.at == none, b.value > top.value, b.value == top.value && b.at < top.at:
			top = b
		}
	}
	return top.at, top.at != none
}

// ErrComm says that a rank of a partitioned model could not reach another one in
// the middle of a step. The context takes no further steps.
var ErrComm = errors.New("another rank of the model could not be reached")

// runError spells what ifl_run returned.
func runError(code int32, tokens, wanted, seqs int) error {
	switch code {
	case 0:
		return nil
	case -1:
		return errors.New("bug: the model's library refused the step's ABI")
	case -2:
		return fmt.Errorf("bug: a step of %d tokens, %d wanted rows and %d sequences is over the model's maximum", tokens, wanted, seqs)
	case -3:
		return errors.New("a token id, page or row of the step is out of range")
	case -4:
		return ErrComm
	}
	return fmt.Errorf("the model's library returned %d", code)
}

// Masked says whether the next steps have trees: then a token of a sequence
// whose first token in the step sees itself sees what its mask says, every other
// one what stands before it.
func (c *Context) Masked(on bool) {
	c.step.mask, c.step.maskWords = nil, 0
	if on {
		c.step.mask, c.step.maskWords = pointer(c.Mask), int32(c.MaskWords)
	}
}

// MoveRow copies a sequence's state row to another place, in every element of
// every state. Between steps only.
func (c *Context) MoveRow(pages []int32, to, from int) {
	if c.on != nil {
		err := c.on.MoveRow(int(pages[to/PageRows]), to%PageRows, int(pages[from/PageRows]), from%PageRows)
		c.copyFailed = errors.Join(c.copyFailed, err)
		return
	}
	purego.SyscallN(c.lib.move, c.handle,
		uintptr(pages[to/PageRows]), uintptr(to%PageRows), uintptr(pages[from/PageRows]), uintptr(from%PageRows))
}

// CopyPage copies a state page, in every element of every state. Between steps
// only.
func (c *Context) CopyPage(to, from int32) {
	if c.on != nil {
		c.copyFailed = errors.Join(c.copyFailed, c.on.CopyPage(to, from))
		return
	}
	base := int64(0) // of the element: all its pages lie together
	for _, n := range c.pageBytes {
		copy(c.state.Bytes[base+int64(to)*n:][:n], c.state.Bytes[base+int64(from)*n:][:n])
		base += n * c.pages
	}
}

func sum(list []int64) (total int64) {
	for _, n := range list {
		total += n
	}
	return total
}

// Close stops the threads and frees the memory. The weights stay.
func (c *Context) Close() {
	if c.handle != 0 {
		purego.SyscallN(c.lib.close, c.handle)
		c.handle = 0
	}
	if c.on != nil {
		c.on.Close()
		c.on = nil
	}
	c.state.Free()
	c.arena.Free()
	c.slab.Free()
	c.seen.Free()
	c.moments.Free()
	c.rows.Free()
	c.marks.Free()
}
