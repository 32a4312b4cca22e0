//go:build unix

// Package engine runs many sequences through one model. AddQuery adds a sequence, Infer
// runs one step over the live sequences, Commit appends the token that the caller
// chose, Fork copies a sequence, and Remove ends it.
//
// A step computes tokens of several sequences: one of each that decodes, and chunks of
// prompts (continuous batching with chunked prefill). Package policy decides which,
// from the states of the sequences and the measured step times. The engine gathers this
// input and executes the batch. The result of a sequence does not depend on the others:
// the kernels add in one order for any number of rows, so the policy decides when a
// token is computed, never how.
//
// A model with an encoder has a graph "encode", which computes a whole sequence in one
// step. It is the only graph of an encoder. In an encoder-decoder it runs on the source
// of a query before the graph "decode" does.
package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/engine/policy"
)

// Defaults and limits of Options.
const (
	DefaultMaxTokens  = 512
	DefaultMaxOutRows = 64
	maxDraft          = 255
)

// ErrBusy is returned when MaxSeqs sequences are live.
var ErrBusy = errors.New("all sequence slots are in use")

// ErrFull is returned when a sequence fills its context.
var ErrFull = errors.New("the context is full")

// A Model is a loaded compiled model.
type Model struct {
	Manifest *manifest.Manifest
	Device   device.Device
	Weights  []byte // packed weights
	Dispatch []byte // from dispatch.Table
}

// Options configure an engine. Zero values select defaults.
type Options struct {
	Graph      string // graph that computes the results; "": the model's last
	Threads    int    // 0: one per physical core
	MaxTokens  int    // maximum tokens per step; 0: 512, and at least Context for a model with an encoder
	MaxOutRows int    // maximum output rows per step; 0: 64, and at least MaxSeqs
	MaxSeqs    int    // maximum live sequences; 0: 1
	Draft      int    // maximum drafted tokens per sequence and step; 0: no drafts
	// Nothing is drafted while plain steps take less than Brief, because drafting would
	// cost more than it could save. 0: no minimum.
	Brief   time.Duration
	Context int  // maximum rows of a sequence, and of its source; 0: the model's
	Pages   int  // KV cache pages; 0: enough for MaxSeqs full contexts
	Cells   int  // cells of fixed-size states; 0: enough for MaxSeqs sequences, and some for the prefix cache
	Rewind  int  // tokens that Rewind removes from a model with fixed-size states without computing the others again
	Pin     bool // pin threads to cores; use it only if nothing else runs on the machine

	AdapterBytes int64 // memory for adapters
	Memory       int64 // memory that Plan may divide, in bytes; 0: 4/5 of what is available

	Populate bool          // fault in KV cache pages ahead of use, concurrently with steps
	Prefix   bool          // enable prefix caching
	StepTime time.Duration // target step latency for chunked prefill; 0: no target, steps are bounded by MaxTokens
}

// An Engine holds the sequences of one graph of a model. Not safe for
// concurrent use.
type Engine struct {
	opt    Options
	entry  int            // index of the graph that computes results
	source int            // index of the encoder graph of an encoder-decoder, or -1
	whole  bool           // entry computes whole sequences
	graph  manifest.Graph // graph entry
	dev    device.Device
	ctx    device.Context
	step   *device.Step // arrays for encoding sources; they belong to the pipeline's first step
	heads  heads
	pages  pool[prefixKey]
	cells  pool[uint64] // keys are the numbers of the pages that end with a cell
	celled bool         // the model has fixed-size states
	seqs   []*sequence  // live, oldest first

	suspended []*sequence // live, but in no step; in order of suspension

	adapters adapters
	manifest *manifest.Manifest

	nextID ID
	gain   draftSteps
	times  policy.StepTimes
	stats  Stats
	vocab  int

	input     policy.Input
	batch     policy.Batch
	draftless bool // the next step has no time for drafts

	pipe    pipeline
	parts   []part    // scratch of plan; after Infer: the parts of the step that it returned
	sources []*source // scratch of encode
	results []Result  // scratch of Infer
}

// Open allocates an engine's memory and starts its threads.
func Open(m Model, opt Options) (*Engine, error) {
	e, outputs, err := prepare(m, opt)
	if err != nil {
		return nil, err
	}
	opt = e.opt
	e.pages = newPool[prefixKey](opt.Pages, e.growth())
	e.cells = newPool[uint64](opt.Cells, nil)
	if e.celled {
		e.pages.cache.evicted = e.cells.forget
	}
	var cpus []int
	if opt.Pin {
		cpus = cpu.Pins(opt.Threads)
	}
	cfg := opt.shapes()
	cfg.CPUs, cfg.Weights, cfg.Dispatch, cfg.Outputs = cpus, m.Weights, m.Dispatch, outputs
	if opt.Populate {
		cfg.Populate = max(e.pages.granted, 1)
	}
	cfg.PageBytes, cfg.CellBytes = m.Manifest.PageBytes(), m.Manifest.CellBytes()
	cfg.Sites, cfg.Orders = m.Manifest.Sites, m.Manifest.RowOrders
	if e.ctx, err = m.Device.Start(cfg); err != nil {
		return nil, err
	}
	if err := e.openPipeline(cfg); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// prepare resolves the options and sizes the outputs. It allocates no memory.
func prepare(m Model, opt Options) (*Engine, []device.Array, error) {
	entry, err := findGraph(m.Manifest, opt.Graph)
	if err != nil {
		return nil, nil, err
	}
	e := &Engine{entry: entry, source: -1, graph: m.Manifest.Graphs[entry], dev: m.Device, manifest: m.Manifest, vocab: m.Manifest.Vocab}
	e.whole = e.graph.Name == encodeGraph
	graphs := []manifest.Graph{e.graph}
	if m.Manifest.Network == "encoder_decoder" && !e.whole {
		if e.source, err = findGraph(m.Manifest, encodeGraph); err != nil {
			return nil, nil, err
		}
		graphs = append(graphs, m.Manifest.Graphs[e.source])
	}
	if h := e.findHeads(m.Manifest); h != nil {
		graphs = append(graphs, *h)
	}
	opt.Prefix = opt.Prefix && !e.whole && e.source < 0 // KV cache rows of a decoder depend on the source too
	e.celled = len(m.Manifest.CellBytes()) > 0
	if err := opt.fill(m.Manifest, e.whole, e.source >= 0); err != nil {
		return nil, nil, err
	}
	outputs, err := opt.arrays(graphs)
	e.heads.cached = e.heads.output > 0 && m.Manifest.Medusa.Cached && opt.Draft > 0
	e.opt = opt
	return e, outputs, err
}

// encodeGraph is the name of the graph that computes whole sequences.
const encodeGraph = "encode"

// Close stops the model's threads and frees the engine's memory. Rows of results are
// invalid afterwards.
func (e *Engine) Close() {
	e.drain()
	e.recycle()
	e.ctx.Close()
	for _, f := range e.pipe.idle {
		f.step.Free()
	}
}

// Options returns the options with all defaults filled in.
func (e *Engine) Options() Options { return e.opt }

// StartCalibration starts to collect statistics of every matmul's input; see
// device.Context.StartCalibration.
func (e *Engine) StartCalibration(products bool) error { return e.ctx.StartCalibration(products) }

// Calibration returns the statistics collected so far.
func (e *Engine) Calibration() device.Calibration { return e.ctx.Calibration() }

// Trace sets fn to be called after every step.
func (e *Engine) Trace(fn func(device.StepTrace)) error { return e.ctx.Trace(fn) }

// Graph returns the graph that the engine runs.
func (e *Engine) Graph() manifest.Graph { return e.graph }

// Device returns the device that computes the engine's steps.
func (e *Engine) Device() device.Device { return e.dev }

// findGraph returns the index of a graph by name; "" selects the last one.
func findGraph(m *manifest.Manifest, name string) (int, error) {
	names := ""
	for i, g := range m.Graphs {
		if g.Name == name || name == "" && i == len(m.Graphs)-1 {
			return i, nil
		}
		names += " " + g.Name
	}
	return 0, fmt.Errorf("the model has no graph %q; it has:%s", name, names)
}

// fill replaces zero values by defaults and validates the options.
func (o *Options) fill(m *manifest.Manifest, whole, sources bool) error {
	if o.Context == 0 {
		o.Context = m.Context
	}
	if o.Context > m.Context {
		return fmt.Errorf("context of %d tokens: the model supports at most %d", o.Context, m.Context)
	}
	if o.Threads == 0 {
		o.Threads = cpu.DefaultThreads()
	}
	o.MaxSeqs = max(o.MaxSeqs, 1)
	if o.MaxTokens == 0 {
		o.MaxTokens = DefaultMaxTokens
		if whole || sources {
			o.MaxTokens = max(o.MaxTokens, o.Context)
		}
	}
	if o.Draft < 0 || o.Draft > maxDraft || whole && o.Draft > 0 {
		return fmt.Errorf("drafts of %d tokens: expected at most %d, and 0 for an encoder", o.Draft, maxDraft)
	}
	o.MaxTokens = max(o.MaxTokens, o.MaxSeqs)
	if o.MaxOutRows == 0 {
		o.MaxOutRows = DefaultMaxOutRows
	}
	// Output rows of large vocabularies take much memory, and drafts are short when
	// many sequences run: reserve rows for one long draft or several short ones.
	drafted := min(o.MaxSeqs*o.Draft, max(DefaultMaxOutRows, o.Draft))
	o.MaxOutRows = max(o.MaxOutRows, min(o.MaxTokens, o.MaxSeqs+drafted))
	if o.Pages == 0 {
		o.Pages = o.MaxSeqs * pagesFor(o.Context)
		if sources {
			o.Pages *= 2
		}
	}
	if err := o.fillCells(len(m.CellBytes()) > 0); err != nil {
		return err
	}
	if o.AdapterBytes < 0 {
		return fmt.Errorf("%d bytes for adapters: expected 0 or more", o.AdapterBytes)
	}
	if o.Context < 1 || o.Threads < 1 || o.Pages < 1 {
		return fmt.Errorf("context %d, threads %d and pages %d must be positive", o.Context, o.Threads, o.Pages)
	}
	return nil
}

// fillCells sets and validates the number of cells.
func (o *Options) fillCells(celled bool) error {
	if !celled {
		o.Cells = 0
		return nil
	}
	if o.Cells == 0 {
		o.Cells = o.needCells()
		if o.Prefix {
			o.Cells += o.cachedCells()
		}
	}
	if o.Cells < o.minCells() {
		return fmt.Errorf("%d cells of fixed-size states: a sequence needs %d", o.Cells, o.minCells())
	}
	return nil
}

// shapes returns the device configuration that follows from the options.
func (o *Options) shapes() *device.Config {
	cfg := &device.Config{
		Threads: o.Threads, Pages: o.Pages, MaxTokens: o.MaxTokens, MaxOutRows: o.MaxOutRows, MaxSeqs: o.MaxSeqs,
		MaskWords: (o.Draft + 64) / 64, MaxPages: o.MaxSeqs * pagesFor(o.Context), Cells: o.Cells,
	}
	if o.Cells > 0 {
		cfg.MaxCells = o.stepCells()
	}
	return cfg
}

// arrays returns the size of each output array: the maximum over the graphs.
func (o *Options) arrays(graphs []manifest.Graph) ([]device.Array, error) {
	var out []device.Array
	for _, g := range graphs {
		for i, output := range g.Outputs {
			rows, err := o.rows(output)
			if err != nil {
				return nil, err
			}
			for i += g.At; i >= len(out); {
				out = append(out, device.Array{})
			}
			if rows*output.Cols > out[i].Rows*out[i].Cols {
				out[i] = device.Array{Rows: rows, Cols: output.Cols}
			}
		}
	}
	return out, nil
}

// rows returns the maximum number of rows of an output in a step.
func (o *Options) rows(out manifest.Output) (int, error) {
	switch out.Rows {
	case "tokens":
		return o.MaxTokens, nil
	case "out_rows":
		return o.MaxOutRows, nil
	case "sequences":
		return o.MaxSeqs, nil
	}
	return 0, fmt.Errorf("output %q of the model has rows %q; expected tokens, out_rows or sequences", out.Name, out.Rows)
}

// Infer runs one step over the live sequences and returns a result for each sequence in
// it; no results mean that there is nothing to compute. It checks ctx only before the
// step.
//
// On a pipeline, Infer keeps as many steps in flight as there are stages, each with a
// fraction of the sequences, and returns the results of the oldest one.
func (e *Engine) Infer(ctx context.Context) ([]Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.gain.end(time.Now(), e.stats.Accepted)
	if err := e.encode(); err != nil {
		return nil, err
	}
	return e.infer(ctx)
}
