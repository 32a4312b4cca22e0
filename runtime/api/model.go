//go:build unix

// Package api runs a compiled model inside a Go program: Open it once, then generate,
// chat and embed from any number of goroutines. Concurrent calls are batched
// (continuous batching).
//
// The package that iflowc compile --emit package writes is this one under the model's
// name, with the model's code embedded and an Open that takes only the options.
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

// Options configure a Model. The zero value runs up to four concurrent texts on every
// physical core, with the model's full context.
type Options struct {
	Weights  string // file of packed weights; "": embedded or beside the program
	Profile  string // dispatch profile; "": the one beside the program, if any
	Threads  int    // 0: one per physical core
	Parallel int    // maximum concurrent texts; 0: 4
	Context  int    // maximum tokens of a text with its continuation; 0: the model's
	ISA      string // instruction set; "": the best for this CPU

	IgnoreSettings []string // fields of the model's generation_config.json or GGUF file to run without
}

// Info describes a model.
type Info struct {
	Name       string
	Network    string // decoder_only, encoder_only or encoder_decoder
	Parameters int64
	Vocabulary int
	Context    int
}

// A Model is an open model. It is safe for concurrent use.
type Model struct {
	bin      *binary.Binary
	weights  *binary.Weights
	eng      *engine.Engine
	s        *scheduler.Scheduler
	template *chat.Template     // nil: there is none
	why      error              // reason for a nil template
	embedder *embedder.Embedder // nil: the model has no embeddings
	context  int
	ignore   []string // Options.IgnoreSettings

	mu     sync.Mutex
	makers []keptMaker // of structured output, created on demand
}

// Open loads the weights and starts the model's threads. Errors caused by the caller or
// by a file are of type binary.Fault.
func Open(e binary.Embedded, program string, o Options) (*Model, error) {
	if o.Threads < 0 || o.Parallel < 0 || o.Context < 0 {
		return nil, binary.Blame(fmt.Errorf("threads %d, parallel %d, context %d: expected 0 or more", o.Threads, o.Parallel, o.Context))
	}
	b, err := binary.Open(e, program)
	if err != nil {
		return nil, err
	}
	m := &Model{bin: b, ignore: o.IgnoreSettings}
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

// start opens code, weights and engine.
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
	if m.bin.Manifest.Network != "decoder_only" { // encoders compute a text in one step
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

// Close stops the model. Running calls return an error.
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

// Info describes the model.
func (m *Model) Info() Info {
	f := m.bin.Manifest
	return Info{Name: f.Name, Network: f.Network, Parameters: f.Params, Vocabulary: f.Vocab, Context: m.context}
}

// Tokens returns the token ids of a text as a prompt, with the BOS token if the model
// needs one.
func (m *Model) Tokens(text string) ([]int32, error) { return m.bin.Encode(text) }

// Embed returns an embedding of length 1 for each text, as the model's files declare.
func (m *Model) Embed(ctx context.Context, texts ...string) ([][]float32, error) {
	if m.embedder == nil {
		return nil, binary.Blame(fmt.Errorf("%s does not support embeddings", m.bin.Manifest.Name))
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
					cancel() // stop the others
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
	tokens, err := m.embedder.Tokens("", text, ids)
	if err != nil {
		return nil, binary.Blame(err)
	}
	return m.embedder.Embed(ctx, scheduler.Job{}, tokens)
}

// firstCause returns the first error that is not context.Canceled, which follows from
// the other errors.
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
