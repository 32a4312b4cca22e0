//go:build unix

package cli

import (
	"context"
	"errors"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/binary"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/ranks"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// A model is the binary's model, opened as far as a subcommand needs it.
type model struct {
	*Process
	bin      *binary.Binary
	embedded Embedded           // of bin
	manifest *manifest.Manifest // of bin

	tok     *tokenizer.Tokenizer // set by the first use
	loading chan loaded          // receives the weights after prefetch
	packed  *binary.Weights
	eng     *engine.Engine
	trace   *tracer // nil: no --trace

	adapters []*loraFile // of --lora
	several  bool        // the subcommand accepts several of them
}

// openModel reads the manifest; everything else is opened on demand.
func openModel(e Embedded, p *Process) (*model, error) {
	b, err := binary.Open(e, p.Program)
	if err != nil {
		return nil, err
	}
	return &model{Process: p, bin: b, embedded: e, manifest: b.Manifest}, nil
}

func (m *model) close() error {
	var err error
	if m.trace != nil {
		err = m.trace.end()
	}
	if m.eng != nil {
		m.eng.Close()
	}
	for _, a := range m.adapters {
		if a.file != nil {
			a.file.Close()
		}
	}
	if m.packed != nil {
		m.packed.Close()
	}
	m.bin.Close()
	return err
}

// tokenizer returns the model's tokenizer, read on first use.
func (m *model) tokenizer() (t *tokenizer.Tokenizer, err error) {
	m.tok, err = m.bin.Tokenizer()
	return m.tok, err
}

// device loads the model's code for the selected device.
func (m *model) device(f *engineFlags) (device.Device, error) {
	s := ranks.Settings{ISA: f.ISA, Weights: f.Weights, Profile: f.Profile, Threads: f.Threads, Pin: f.Pin, Timeout: f.Patience}
	return m.bin.Device(f.Device, s, m.say)
}

// dispatchTable returns the table of the named profile, or of the profile
// beside the binary, or the compiler's defaults.
func (m *model) dispatchTable(f *engineFlags) ([]byte, error) { return m.bin.Dispatch(f.Profile) }

// prefetch starts loading the weights while the caller tokenizes its prompt:
// loading takes most of the time before prefill.
func (m *model) prefetch(f *engineFlags) {
	m.loading = make(chan loaded, 1)
	go func() {
		p, data, err := m.bin.Weights(f.Weights)
		m.loading <- loaded{p, data, err}
	}()
}

// loaded is the result of loading the weights.
type loaded struct {
	file *binary.Weights
	data []byte
	err  error
}

// plan plans the memory of an engine; see engine.Plan. It says so if the memory lowers the
// context.
func (m *model) plan(f *engineFlags, opt engine.Options) (engine.Memory, engine.Options, error) {
	dev, err := m.device(f)
	if err != nil {
		return engine.Memory{}, opt, err
	}
	asked := opt.Context
	mem, opt, err := engine.Plan(engine.Model{Manifest: m.manifest, Device: dev}, opt)
	if asked == 0 && err == nil && opt.Context < m.manifest.Context {
		m.say("note: the context is %d tokens, not the model's %d: the KV cache has no more memory; iflowc compile --kv q8 or q4 makes it smaller", opt.Context, m.manifest.Context)
	}
	return mem, opt, wrong(err)
}

// engine starts the model. It stops waiting for the weights when ctx ends.
func (m *model) engine(ctx context.Context, f *engineFlags, opt engine.Options) (*engine.Engine, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if len(f.LoRA) > 1 && !m.several {
		return nil, wrong(errors.New("--lora: expected one adapter; serve and chat accept several"))
	}
	if err := m.openAdapters(f, nil); err != nil {
		return nil, err
	}
	opt.AdapterBytes = max(opt.AdapterBytes, m.adapterBytes())
	if m.loading == nil {
		m.prefetch(f)
	}
	dev, err := m.device(f)
	if err != nil {
		return nil, err
	}
	table, err := m.dispatchTable(f)
	if err != nil {
		return nil, err
	}
	var w loaded
	select {
	case w = <-m.loading:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	m.packed = w.file
	if w.err != nil {
		return nil, w.err
	}
	m.warnRandom(w.file, f.Weights)
	opt.Threads, opt.Pin = f.Threads, f.Pin
	eng, err := engine.Open(engine.Model{Manifest: m.manifest, Device: dev, Weights: w.data, Dispatch: table}, opt)
	if err != nil {
		return nil, err
	}
	m.eng = eng
	m.Startup.Release()
	if err := m.loadAdapters(eng); err != nil {
		return nil, err
	}
	if f.Trace != "" {
		err = m.startTrace(f.Trace, eng)
	}
	return eng, err
}
