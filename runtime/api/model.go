//go:build unix

// Package api is a compiled model inside a Go program: Open it once, then
// generate, chat and embed from as many goroutines as there are. What they ask
// for at the same time shares the model's steps.
//
// The package that iflowc compile --emit package writes is this one under the
// model's name, with the model's code inside and an Open that needs no more than
// the options.
package api

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/iflowc/iflowc/runtime/binary"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/embedder"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/text/chat"
)

// Options say how a model is run. The zero value runs four texts at once on
// every physical core, with the model's whole context.
type Options struct {
	Weights  string // the packed weights; "": behind or beside the program
	Profile  string // a dispatch profile; "": the one beside the program, if there is one
	Threads  int    // 0: one a physical core
	Parallel int    // texts at once; 0: 4
	Context  int    // most tokens of a text with its continuation; 0: the model's
	ISA      string // instruction set; "": the best for this processor
}

// Info is what a model is.
type Info struct {
	Name       string
	Network    string // decoder_only, encoder_only or encoder_decoder
	Parameters int64
	Vocabulary int
	Context    int
}

// A Model is ready to be asked. Safe for concurrent use.
type Model struct {
	bin      *binary.Binary
	weights  *binary.Weights
	eng      *engine.Engine
	s        *scheduler.Scheduler
	template *chat.Template     // nil: it has none
	why      error              // why there is no template
	embedder *embedder.Embedder // nil: it makes no vectors
	context  int

	mu     sync.Mutex
	makers []keptMaker // of masks, once somebody asked
}

// Open reads the weights and starts the model's threads. Errors of the type
// binary.Fault are the caller's or a file's.
func Open(e binary.Embedded, program string, o Options) (*Model, error) {
	if o.Threads < 0 || o.Parallel < 0 || o.Context < 0 {
		return nil, binary.Blame(fmt.Errorf("threads %d, parallel %d, context %d: expected 0 or more", o.Threads, o.Parallel, o.Context))
	}
	b, err := binary.Open(e, program)
	if err != nil {
		return nil, err
	}
	m := &Model{bin: b}
	if err := m.start(o); err != nil {
		m.Close()
		return nil, err
	}
	m.s = scheduler.New(m.eng, scheduler.Options{Vocab: b.Manifest.Vocab})
	m.embedder = embedder.New(b.Manifest, b.EncodeWhole, m.eng, m.s)
	if tok, err := b.Tokenizer(); err == nil {
		m.template, m.why = chat.Open(b.Templates(), tok, "")
	} else {
		m.why = err
	}
	return m, nil
}

// start loads code and weights and opens the engine.
func (m *Model) start(o Options) error {
	dev, err := m.bin.Device("cpu", binary.Settings{ISA: o.ISA, Weights: o.Weights, Profile: o.Profile}, nil)
	if err != nil {
		return err
	}
	table, err := m.bin.Dispatch(o.Profile)
	if err != nil {
		return err
	}
	var data []byte
	if m.weights, data, err = m.bin.Weights(o.Weights); err != nil {
		return err
	}
	opt := engine.Options{Threads: o.Threads, MaxSeqs: o.Parallel, Context: o.Context, Prefix: true}
	if opt.MaxSeqs == 0 {
		opt.MaxSeqs = 4
	}
	if m.bin.Manifest.Network != "decoder_only" { // an encoder reads texts whole
		opt.MaxTokens = max(engine.DefaultMaxTokens, m.bin.Manifest.Context)
	}
	full := engine.Model{Manifest: m.bin.Manifest, Device: dev, Weights: data, Dispatch: table}
	plan, opt, err := engine.Plan(full, opt)
	if err == nil {
		err = plan.Check()
	}
	if err != nil {
		return binary.Blame(err)
	}
	m.eng, err = engine.Open(full, opt)
	m.context = opt.Context
	return err
}

// Close stops the model. What still runs ends with an error.
func (m *Model) Close() {
	if m.s != nil {
		m.s.Close()
	}
	if m.eng != nil {
		m.eng.Close()
	}
	if m.weights != nil {
		m.weights.Close()
	}
	m.bin.Close()
	m.s, m.eng, m.weights = nil, nil, nil
}

// Info says what the model is.
func (m *Model) Info() Info {
	f := m.bin.Manifest
	return Info{Name: f.Name, Network: f.Network, Parameters: f.Params, Vocabulary: f.Vocab, Context: m.context}
}

// Tokens gives the token ids of a text, as a prompt has them.
func (m *Model) Tokens(text string) ([]int32, error) { return m.bin.Encode(text) }

// Embed gives one vector of length 1 a text, as the model's files say.
func (m *Model) Embed(ctx context.Context, texts ...string) ([][]float32, error) {
	if m.embedder == nil {
		return nil, binary.Blame(fmt.Errorf("%s makes no vectors of texts", m.bin.Manifest.Name))
	}
	out := make([][]float32, len(texts))
	errs := make([]error, len(texts))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work := make(chan int)
	done := make(chan struct{})
	workers := min(len(texts), m.eng.Options().MaxSeqs)
	for range workers {
		go func() {
			for i := range work {
				if out[i], errs[i] = m.embed(ctx, texts[i]); errs[i] != nil {
					cancel() // the others need not go on
				}
			}
			done <- struct{}{}
		}()
	}
	for i := range texts {
		work <- i
	}
	close(work)
	for range workers {
		<-done
	}
	return out, firstCause(errs)
}

func (m *Model) embed(ctx context.Context, text string) ([]float32, error) {
	ids, err := m.bin.EncodeWhole(text)
	if err != nil {
		return nil, err
	}
	tokens, err := m.embedder.Tokens(text, ids)
	if err != nil {
		return nil, binary.Blame(err)
	}
	return m.embedder.Embed(ctx, scheduler.Job{}, tokens)
}

// firstCause is the first error that is not the echo of another one.
func firstCause(errs []error) error {
	var echo error
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		if echo == nil {
			echo = err
		}
	}
	return echo
}
