//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"os/exec"

	"github.com/iflowc/iflowc/runtime/binary"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/draft"
)

// embeddedCmd writes the files with which another compiled model can run this
// one in its own process.
type embeddedCmd struct{}

// Run writes binary.Embedded, as gob.
func (embeddedCmd) Run(m *model) error { return gob.NewEncoder(m.Stdout).Encode(m.embedded) }

// embeddedName is the name of embeddedCmd.
const embeddedName = "embedded"

// openDraft reads the files of another compiled model and checks that it has
// the same vocabulary.
func (m *model) openDraft(ctx context.Context, path string) (*binary.Binary, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, path, embeddedName)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, wrong(fmt.Errorf("--draft %s: %w; expected a model compiled by iflowc (it printed: %.200s)", path, err, bytes.TrimSpace(said.Bytes())))
	}
	var e binary.Embedded
	if err := gob.NewDecoder(bytes.NewReader(out)).Decode(&e); err != nil {
		return nil, wrong(fmt.Errorf("--draft %s: cannot be read: %w; compile it again", path, err))
	}
	b, err := binary.Open(e, path)
	if err != nil {
		return nil, wrong(fmt.Errorf("--draft %s: %w", path, err))
	}
	switch d := b.Manifest; {
	case d.Network != decoderOnly:
		return nil, wrong(fmt.Errorf("--draft %s: it is %s; only a decoder can draft", path, article(d.Network)))
	case d.Vocab != m.manifest.Vocab || e.Tokenizer != m.embedded.Tokenizer:
		return nil, wrong(fmt.Errorf("--draft %s: its vocabulary (%d tokens) is not this model's (%d); a draft model needs the same tokens", path, d.Vocab, m.manifest.Vocab))
	}
	return b, nil
}

// A draftModel is an open draft model with its files.
type draftModel struct {
	*draft.Model
	eng     *engine.Engine
	weights *binary.Weights
}

// startDraft starts a draft model next to the target's engine.
func startDraft(b *binary.Binary, target engine.Options, isa string) (*draftModel, error) {
	dev, err := b.CPU(isa)
	if err != nil {
		return nil, err
	}
	table, err := b.Dispatch("")
	if err != nil {
		return nil, err
	}
	w, data, err := b.Weights("")
	if err != nil {
		if w != nil {
			w.Close()
		}
		return nil, err
	}
	opt := draft.Options(target)
	opt.Context = min(opt.Context, b.Manifest.Context)
	eng, err := engine.Open(engine.Model{Manifest: b.Manifest, Device: dev, Weights: data, Dispatch: table}, opt)
	if err != nil {
		w.Close()
		return nil, err
	}
	d := &draftModel{eng: eng, weights: w}
	if d.Model, err = draft.New(eng, b.Manifest.Vocab); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *draftModel) close() {
	d.eng.Close()
	d.weights.Close()
}
