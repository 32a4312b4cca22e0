//go:build unix

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/iflowc/iflowc/runtime/dispatch"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/load"
	"github.com/iflowc/iflowc/runtime/manifest"
	"github.com/iflowc/iflowc/runtime/tokenizer"
	"github.com/iflowc/iflowc/runtime/weights"
)

// A model is the binary's model, opened as far as a verb needs it.
type model struct {
	*Process
	embedded Embedded
	manifest *manifest.Manifest

	tok     *tokenizer.Tokenizer
	loading chan loaded // gets the weights, once prefetch was called
	packed  *packedFile
	eng     *engine.Engine
}

// openModel reads the manifest; everything else waits until a verb asks.
func openModel(e Embedded, p *Process) (*model, error) {
	m := &manifest.Manifest{}
	if err := json.Unmarshal(e.Manifest, m); err != nil {
		return nil, fmt.Errorf("the embedded manifest cannot be read: %w; compile the model again", err)
	}
	if m.Format != manifest.Format {
		return nil, fmt.Errorf("the embedded manifest has format %d, this runtime reads %d; compile the model again", m.Format, manifest.Format)
	}
	return &model{Process: p, embedded: e, manifest: m}, nil
}

func (m *model) close() {
	if m.eng != nil {
		m.eng.Close()
	}
	if m.packed != nil {
		m.packed.close()
	}
}

// tokenizer returns the model's tokenizer, read on first use.
func (m *model) tokenizer() (*tokenizer.Tokenizer, error) {
	if m.tok != nil {
		return m.tok, nil
	}
	if len(m.embedded.Tokenizer) == 0 {
		return nil, wrong(fmt.Errorf("%s was compiled without a tokenizer; give token ids with --ids", m.manifest.Name))
	}
	t, err := tokenizer.Unmarshal(m.embedded.Tokenizer)
	if err != nil {
		return nil, fmt.Errorf("the embedded tokenizer cannot be read: %w; compile the model again", err)
	}
	m.tok = t
	return t, nil
}

// library loads the model's code for this processor.
func (m *model) library(isa string) (*load.Library, error) {
	i, err := load.Pick(m.manifest.Libs, isa)
	if err != nil {
		return nil, wrong(err)
	}
	l := m.manifest.Libs[i]
	data, ok := m.embedded.Libs[l.File]
	if !ok {
		return nil, fmt.Errorf("bug: the binary names the library %s but does not hold it", l.File)
	}
	return load.Open(l.ISA, data)
}

// dispatchTable makes the table from a profile that was named or lies beside
// the binary, else from the compiler's defaults.
func (m *model) dispatchTable(f *engineFlags) ([]byte, error) {
	var p *dispatch.Profile
	var err error
	if f.Profile != "" {
		p, err = dispatch.Read(f.Profile)
	} else {
		p, err = dispatch.ReadBeside(m.Program + ".profile")
	}
	if err != nil {
		return nil, wrong(err)
	}
	table, err := dispatch.Table(m.manifest.Sites, p)
	return table, wrong(err)
}

// prefetch starts reading the weights while the caller reads its prompt: they
// take most of the time before the first token.
func (m *model) prefetch(f *engineFlags) {
	m.loading = make(chan loaded, 1)
	go func() {
		p, data, err := m.loadWeights(f.Weights)
		m.loading <- loaded{p, data, err}
	}()
}

// loaded is what reading the weights gave.
type loaded struct {
	file *packedFile
	data []byte
	err  error
}

// engine starts the model. It stops waiting for the weights when ctx ends.
func (m *model) engine(ctx context.Context, f *engineFlags, opt engine.Options) (*engine.Engine, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if m.loading == nil {
		m.prefetch(f)
	}
	lib, err := m.library(f.ISA)
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
	opt.Threads, opt.Pin = f.Threads, f.Pin
	eng, err := engine.Open(engine.Model{Manifest: m.manifest, Library: lib, Weights: w.data, Dispatch: table}, opt)
	if err != nil {
		return nil, err
	}
	m.eng = eng
	return eng, nil
}

// loadWeights reads the packed weights: the file named, else those at the end
// of the binary, else the file beside it.
func (m *model) loadWeights(path string) (*packedFile, []byte, error) {
	p, err := m.openWeights(path)
	if err != nil {
		return nil, nil, wrong(err)
	}
	if err := m.checkWeights(p); err != nil {
		return p, nil, wrong(err)
	}
	data, err := p.Load(false)
	return p, data, wrong(err)
}

func (m *model) openWeights(path string) (*packedFile, error) {
	if path != "" {
		p, err := weights.OpenPacked(path)
		if err != nil {
			return nil, err
		}
		return &packedFile{Packed: p, name: path}, nil
	}
	if p, err := openTail(m.Program); p != nil || err != nil {
		return p, err
	}
	path = m.Program + ".weights"
	p, err := weights.OpenPacked(path)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("%s is missing; it must lie beside the program, or be named with --weights FILE", path)
	}
	if err != nil {
		return nil, err
	}
	return &packedFile{Packed: p, name: path}, nil
}

// checkWeights compares the file's index with what the code was compiled for.
func (m *model) checkWeights(p *packedFile) error {
	items := p.Items()
	if len(items) != len(m.manifest.Weights) {
		return fmt.Errorf("%s holds %d weights, the model has %d; it belongs to another model", p.name, len(items), len(m.manifest.Weights))
	}
	for i, w := range m.manifest.Weights {
		it := items[i]
		if it.Name != w.Name || !slices.Equal(it.Index, w.Index) || it.DType != w.DType || it.Layout != w.Layout ||
			it.Rows != w.Rows || it.Cols != w.Cols || it.Offset != w.Offset || it.Bytes != w.Bytes {
			return fmt.Errorf("%s: weight %d is %s %s[%d, %d], the model needs %s %s[%d, %d]; it belongs to another model",
				p.name, i, it.Name, it.DType, it.Rows, it.Cols, w.Name, w.DType, w.Rows, w.Cols)
		}
	}
	return nil
}
