//go:build unix

// Package engine runs many sequences through one model: AddQuery, Infer (one
// step over whatever is live), Commit (the caller picked a token), Fork,
// Remove.
//
// A step takes tokens of several sequences: one of each that is being decoded, and
// chunks of prompts. Which, decides package policy by the states of the sequences
// and the measured time of steps; the engine gathers these and carries out the
// batch. What a sequence gets does not depend on its company: the kernels sum in
// one order whatever the rows, so the policy only decides when a token is
// computed, never how.
//
// A model with an encoder has a graph "encode", which gets a sequence whole: it
// is the only graph of an encoder, and comes before the graph "decode" of an
// encoder-decoder, whose queries have a source.
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

// Defaults of Options.
const (
	DefaultMaxTokens  = 512
	DefaultMaxOutRows = 64
	mostDraft         = 255
)

// ErrBusy says that every sequence slot is taken: call Remove, or wait.
var ErrBusy = errors.New("every sequence of the engine is in use")

// ErrFull says that a sequence has as many tokens as the context has rows.
var ErrFull = errors.New("the context is full")

// A Model is a compiled model, loaded.
type Model struct {
	Manifest *manifest.Manifest
	Device   device.Device
	Weights  []byte // the packed region
	Dispatch []byte // from dispatch.Table
}

// Options fix the shape of an engine. Zero values choose.
type Options struct {
	Graph      string // which graph of the model gives the results; "": its last
	Threads    int    // 0: one a physical core
	MaxTokens  int    // budget of a step; 0: 512, and at least Context where an encoder reads sequences whole
	MaxOutRows int    // most rows of results in a step; 0: 64, at least MaxSeqs
	MaxSeqs    int    // sequences alive at once; 0: 1
	Draft      int    // most drafted tokens of a sequence in a step; 0: it takes no drafts
	// A plain step that takes less leaves no time to draft in; 0: drafts are judged
	// by what they gain alone.
	Brief   time.Duration
	Context int  // most rows of a sequence, and of its source; 0: the model's
	Pages   int  // state pages; 0: enough for every sequence's whole context
	Pin     bool // pin threads to processors: only where nothing else runs

	Populate bool          // take memory for state pages ahead of their use, beside the steps
	Prefix   bool          // keep full pages of ended sequences for others that begin with the same tokens
	StepTime time.Duration // cut prompts so that a step takes about so long, or twice a step without them; 0: by MaxTokens alone
}

// An Engine holds the sequences of one graph of a model. Not safe for
// concurrent use.
type Engine struct {
	opt    Options
	entry  int            // the graph that gives results
	source int            // the graph that takes sources, or -1
	whole  bool           // entry gets sequences whole
	graph  manifest.Graph // of entry
	dev    device.Device
	ctx    device.Context
	step   *device.Step // the arrays that sources are read with: the first of those in flight
	heads  heads
	pages  pageList
	seqs   []*sequence // alive, oldest first

	suspended []*sequence // alive, but in no step, the first to be suspended first

	nextID ID
	gain   draftSteps
	times  policy.StepTimes
	stats  Stats
	vocab  int

	input     policy.Input
	batch     policy.Batch
	draftless bool // the last step had no time for drafts

	pipe    pipeline
	parts   []part    // scratch of plan; after Infer: those of the step that it shows
	sources []*source // scratch of encode
	results []Result  // scratch of Infer
}

// Open starts a model's threads and maps its memory.
func Open(m Model, opt Options) (*Engine, error) {
	e, outputs, err := prepare(m, opt)
	if err != nil {
		return nil, err
	}
	opt = e.opt
	e.pages = newPageList(opt.Pages)
	var cpus []int
	if opt.Pin {
		cpus = cpu.Pins(opt.Threads)
	}
	cfg := opt.shapes()
	cfg.CPUs, cfg.Weights, cfg.PageBytes, cfg.Populate, cfg.Dispatch, cfg.Outputs = cpus, m.Weights, pageBytes(m.Manifest), opt.Populate, m.Dispatch, outputs
	if e.ctx, err = m.Device.Start(cfg); err != nil {
		return nil, err
	}
	if err := e.openPipeline(cfg); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// prepare makes every choice of the options and shapes the results, without
// taking any memory.
func prepare(m Model, opt Options) (*Engine, []device.Array, error) {
	entry, err := findGraph(m.Manifest, opt.Graph)
	if err != nil {
		return nil, nil, err
	}
	e := &Engine{entry: entry, source: -1, graph: m.Manifest.Graphs[entry], dev: m.Device, vocab: m.Manifest.Vocab}
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
	if err := opt.fill(m.Manifest, e.whole, e.source >= 0); err != nil {
		return nil, nil, err
	}
	outputs, err := opt.arrays(graphs)
	opt.Prefix = opt.Prefix && !e.whole && e.source < 0 // rows of sources decide too
	e.opt = opt
	return e, outputs, err
}

// encodeGraph is the name of the graph that gets sequences whole.
const encodeGraph = "encode"

// Close stops the model's threads and frees the engine's memory. Rows of
// results must not be used after.
func (e *Engine) Close() {
	e.drain()
	e.recycle()
	e.ctx.Close()
	for _, f := range e.pipe.idle {
		f.step.Free()
	}
}

// Options returns the options with every choice made.
func (e *Engine) Options() Options { return e.opt }

// StartCalibration makes every matmul add up what it reads
// (device.Context.StartCalibration).
func (e *Engine) StartCalibration(products bool) error { return e.ctx.StartCalibration(products) }

// Calibration gives the sums so far.
func (e *Engine) Calibration() device.Calibration { return e.ctx.Calibration() }

// Trace calls fn after every step from now on.
func (e *Engine) Trace(fn func(device.StepTrace)) error { return e.ctx.Trace(fn) }

// Graph is the graph that the engine runs.
func (e *Engine) Graph() manifest.Graph { return e.graph }

// Device is what computes the engine's steps.
func (e *Engine) Device() device.Device { return e.dev }

// findGraph gives the index of a graph; "" is the last one.
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

// pageBytes lists the page size of every element of every state.
func pageBytes(m *manifest.Manifest) (list []int64) {
	for _, s := range m.States {
		for range s.Count {
			list = append(list, s.PageBytes)
		}
	}
	return list
}

// fill replaces zero values by what the model and the machine suggest.
func (o *Options) fill(m *manifest.Manifest, whole, sources bool) error {
	if o.Context == 0 {
		o.Context = m.Context
	}
	if o.Context > m.Context {
		return fmt.Errorf("a context of %d tokens: the model was made for at most %d", o.Context, m.Context)
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
	if o.Draft < 0 || o.Draft > mostDraft || whole && o.Draft > 0 {
		return fmt.Errorf("drafts of %d tokens: expected at most %d, and none of an encoder", o.Draft, mostDraft)
	}
	o.MaxTokens = max(o.MaxTokens, o.MaxSeqs)
	if o.MaxOutRows == 0 {
		o.MaxOutRows = DefaultMaxOutRows
	}
	// Rows of large vocabularies take memory, and where many sequences run drafts
	// are short: there is room for one long draft, or some short ones.
	drafted := min(o.MaxSeqs*o.Draft, max(DefaultMaxOutRows, o.Draft))
	o.MaxOutRows = max(o.MaxOutRows, min(o.MaxTokens, o.MaxSeqs+drafted))
	if o.Pages == 0 {
		o.Pages = o.MaxSeqs * pagesFor(o.Context)
		if sources {
			o.Pages *= 2
		}
	}
	if o.Context < 1 || o.Threads < 1 || o.Pages < 1 {
		return fmt.Errorf("context %d, threads %d and pages %d must be positive", o.Context, o.Threads, o.Pages)
	}
	return nil
}

// shapes are those of the options.
func (o *Options) shapes() *device.Config {
	return &device.Config{
		Threads: o.Threads, Pages: o.Pages, MaxTokens: o.MaxTokens, MaxOutRows: o.MaxOutRows, MaxSeqs: o.MaxSeqs,
		MaskWords: (o.Draft + 64) / 64, MaxPages: o.MaxSeqs * pagesFor(o.Context),
	}
}

// arrays shapes the outputs so that each has room for those of any graph.
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

// rows is the most rows an output has in a step.
func (o *Options) rows(out manifest.Output) (int, error) {
	switch out.Rows {
	case "tokens":
		return o.MaxTokens, nil
	case "out_rows":
		return o.MaxOutRows, nil
	case "sequences":
		return o.MaxSeqs, nil
	}
	return 0, fmt.Errorf("output %q of the model counts its rows by %q; this runtime knows tokens, outRows and sequences", out.Name, out.Rows)
}

// Infer runs one step over the live sequences and returns what it gave each
// sequence in it. With nothing to compute it returns no results. It
// looks at ctx before the step, never in the middle of one.
//
// On a pipeline it starts as many steps as there are stages, each with its share
// of the sequences, and returns what the oldest gave; the others go on
// meanwhile, so that every stage works.
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
