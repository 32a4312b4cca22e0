//go:build unix

// Package engine runs many sequences through one model: AddQuery, Infer (one
// step over whatever is live), Commit (the caller picked a token), Remove.
//
// A step takes tokens of several sequences up to a budget: first the one
// token of each sequence that is being decoded, then chunks of prompts in the
// order they came. What a sequence gets does not depend on its company: the
// kernels sum in one order whatever the rows, and the engine only decides
// when a token is computed, never how.
package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/iflowc/iflowc/runtime/load"
	"github.com/iflowc/iflowc/runtime/manifest"
)

// Defaults of Options.
const (
	DefaultMaxTokens = 512
	DefaultMaxWanted = 64
)

// ErrBusy says that every sequence slot is taken: call Remove, or wait.
var ErrBusy = errors.New("every sequence of the engine is in use")

// ErrFull says that a sequence has as many tokens as the context has rows.
var ErrFull = errors.New("the context is full")

// A Model is a compiled model, loaded.
type Model struct {
	Manifest *manifest.Manifest
	Library  *load.Library
	Weights  []byte // the packed region
	Dispatch []byte // from dispatch.Table
}

// Options fix the shape of an engine. Zero values choose.
type Options struct {
	Graph     string // which graph of the model runs; "": its first
	Threads   int    // 0: one a physical core
	MaxTokens int    // budget of a step; 0: 512
	MaxWanted int    // most rows of results in a step; 0: 64, at least MaxSeqs
	MaxSeqs   int    // sequences alive at once; 0: 1
	Context   int    // most rows of a sequence; 0: the model's
	Pages     int    // state pages; 0: enough for every sequence's whole context
}

// An Engine holds the sequences of one graph of a model. Not safe for
// concurrent use.
type Engine struct {
	opt    Options
	entry  int
	graph  manifest.Graph
	lib    *load.Library
	ctx    *load.Context
	pages  pageList
	seqs   []*sequence // alive, oldest first
	nextID ID

	parts   []part   // scratch of plan
	results []Result // scratch of Infer
}

// Open starts a model's threads and maps its memory.
func Open(m Model, opt Options) (*Engine, error) {
	entry, err := findGraph(m.Manifest, opt.Graph)
	if err != nil {
		return nil, err
	}
	if err := opt.fill(m.Manifest); err != nil {
		return nil, err
	}
	graph := m.Manifest.Graphs[entry]
	outputs := make([]load.Array, len(graph.Outputs))
	for i, o := range graph.Outputs {
		rows, err := opt.rows(o)
		if err != nil {
			return nil, err
		}
		outputs[i] = load.Array{Rows: rows, Cols: o.Cols}
	}
	ctx, err := m.Library.Start(load.Config{
		Threads: opt.Threads, CPUs: load.Pins(opt.Threads), Weights: m.Weights, Pages: opt.Pages,
		MaxTokens: opt.MaxTokens, MaxWanted: opt.MaxWanted, MaxSeqs: opt.MaxSeqs,
		Dispatch: m.Dispatch, Outputs: outputs,
	})
	if err != nil {
		return nil, err
	}
	return &Engine{opt: opt, entry: entry, graph: graph, lib: m.Library, ctx: ctx, pages: newPageList(opt.Pages)}, nil
}

// Close stops the model's threads and frees the engine's memory. Rows of
// results must not be used after.
func (e *Engine) Close() { e.ctx.Close() }

// Options returns the options with every choice made.
func (e *Engine) Options() Options { return e.opt }

// Graph is the graph that the engine runs.
func (e *Engine) Graph() manifest.Graph { return e.graph }

// Library is the model's code that the engine runs.
func (e *Engine) Library() *load.Library { return e.lib }

func findGraph(m *manifest.Manifest, name string) (int, error) {
	names := ""
	for i, g := range m.Graphs {
		if name == "" || g.Name == name {
			return i, nil
		}
		names += " " + g.Name
	}
	return 0, fmt.Errorf("the model has no graph %q; it has:%s", name, names)
}

// fill replaces zero values by what the model and the machine suggest.
func (o *Options) fill(m *manifest.Manifest) error {
	if o.Context == 0 {
		o.Context = m.Context
	}
	if o.Context > m.Context {
		return fmt.Errorf("a context of %d tokens: the model was made for at most %d", o.Context, m.Context)
	}
	if o.Threads == 0 {
		o.Threads = load.DefaultThreads()
	}
	o.MaxSeqs = max(o.MaxSeqs, 1)
	if o.MaxTokens == 0 {
		o.MaxTokens = DefaultMaxTokens
	}
	o.MaxTokens = max(o.MaxTokens, o.MaxSeqs)
	if o.MaxWanted == 0 {
		o.MaxWanted = DefaultMaxWanted
	}
	o.MaxWanted = max(o.MaxWanted, o.MaxSeqs)
	if o.Pages == 0 {
		o.Pages = o.MaxSeqs * pagesFor(o.Context)
	}
	if o.Context < 1 || o.Threads < 1 || o.Pages < 1 {
		return fmt.Errorf("context %d, threads %d and pages %d must be positive", o.Context, o.Threads, o.Pages)
	}
	return nil
}

// rows is the most rows an output has in a step.
func (o *Options) rows(out manifest.Output) (int, error) {
	switch out.Rows {
	case "tokens":
		return o.MaxTokens, nil
	case "wanted":
		return o.MaxWanted, nil
	case "sequences":
		return o.MaxSeqs, nil
	}
	return 0, fmt.Errorf("output %q of the model counts its rows by %q; this runtime knows tokens, wanted and sequences", out.Name, out.Rows)
}

// Infer runs one step over the live sequences and returns what it gave each
// sequence in it. With nothing to compute it returns no results. It
// looks at ctx before the step, never in the middle of one.
func (e *Engine) Infer(ctx context.Context) ([]Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	parts, err := e.plan()
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	tokens, wanted := e.fillStep(parts)
	if err := e.ctx.Run(e.entry, tokens, wanted, len(parts), false); err != nil {
		return nil, err
	}
	return e.collect(parts), nil
}
