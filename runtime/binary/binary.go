//go:build unix

// Package binary opens compiled models: the manifest, tokenizer and libraries embedded
// in a per-model binary, and the weights embedded in it or beside it.
package binary

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/device/ranks"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// Embedded is the data that the compiler embeds in a binary.
type Embedded struct {
	Manifest  string            // manifest.Manifest as JSON
	Tokenizer string            // encoded by tokenizer.Marshal; empty: the model has none
	IR        string            // the compiled module as text
	Spec      string            // the model spec as YAML
	Libs      map[string]string // manifest.Lib.File → shared library
}

// A Fault is an error caused by the call or by a file, not by the program.
type Fault struct{ error }

// Unwrap returns the error itself.
func (f Fault) Unwrap() error { return f.error }

// Blame wraps an error in a Fault; nil remains nil.
func Blame(err error) error {
	if err == nil {
		return nil
	}
	return Fault{err}
}

// A Binary is a compiled model. Its parts are opened on demand.
type Binary struct {
	Embedded Embedded
	Manifest *manifest.Manifest
	Program  string // path of the program that the weights are embedded in or beside

	tok *tokenizer.Tokenizer

	// For a partitioned model:
	open   func(ranks.Settings) (ranks.Group, error) // opens the ranks: threads of this process, or of the job that it joined
	ranks  device.Device                             // nil before open
	status ranks.Status
	mu     sync.Mutex
	shards map[string]shard // by path
}

// Close closes the resources of a partitioned model's ranks. The engine must be closed
// before.
func (b *Binary) Close() { b.closeRanks() }

// Open reads the manifest; other parts are opened on demand. program is the path of the
// file that the weights are embedded in, or beside as program.weights.
func Open(e Embedded, program string) (*Binary, error) {
	m := &manifest.Manifest{}
	if err := json.Unmarshal([]byte(e.Manifest), m); err != nil {
		return nil, fmt.Errorf("the embedded manifest cannot be read: %w; compile the model again", err)
	}
	if m.Format != manifest.Format {
		return nil, fmt.Errorf("the embedded manifest has format %d, expected %d; compile the model again", m.Format, manifest.Format)
	}
	b := &Binary{Embedded: e, Manifest: m, Program: program, status: ranks.Alone{}}
	b.open = b.threads
	return b, nil
}

// Tokenizer returns the model's tokenizer, decoded on first use.
func (b *Binary) Tokenizer() (*tokenizer.Tokenizer, error) {
	if b.tok != nil {
		return b.tok, nil
	}
	if len(b.Embedded.Tokenizer) == 0 {
		return nil, Fault{fmt.Errorf("%s was compiled without a tokenizer; pass token ids with --ids", b.Manifest.Name)}
	}
	t, err := tokenizer.Unmarshal(b.Embedded.Tokenizer)
	if err != nil {
		return nil, fmt.Errorf("the embedded tokenizer cannot be read: %w; compile the model again", err)
	}
	b.tok = t
	return t, nil
}

// Encode returns the token ids of a text, with the BOS token if the model needs one.
func (b *Binary) Encode(text string) ([]int32, error) {
	t, err := b.Tokenizer()
	if err != nil {
		return nil, err
	}
	ids := t.Encode(text, true)
	if bos := int32(b.Manifest.BOS); b.Manifest.AddBOS && bos >= 0 && (len(ids) == 0 || ids[0] != bos) {
		ids = append([]int32{bos}, ids...)
	}
	if len(ids) == 0 {
		return nil, Fault{errors.New("the prompt is empty")}
	}
	return ids, nil
}

// EncodeWhole returns the token ids of a text for an embedding, truncated and in lower
// case if the model's files say so.
func (b *Binary) EncodeWhole(text string) ([]int32, error) {
	how := b.Manifest.Embedding
	if how == nil {
		return b.Encode(text)
	}
	t, err := b.Tokenizer()
	if err != nil {
		return nil, err
	}
	if how.Lower {
		text = strings.ToLower(text)
	}
	return t.EncodeAtMost(text, how.MaxTokens), nil
}

// CPU opens the model's code for this CPU, or for the named instruction set.
func (b *Binary) CPU(isa string) (*cpu.Library, error) {
	if b.Partitioned() {
		return nil, Fault{fmt.Errorf("the model is compiled for the devices %s and has no library for the whole model", b.Manifest.Partition.Devices)}
	}
	i, err := cpu.ChooseISA(b.Manifest.Libs, isa)
	if err != nil {
		return nil, Fault{err}
	}
	l := b.Manifest.Libs[i]
	data, ok := b.Embedded.Libs[l.File]
	if !ok {
		return nil, fmt.Errorf("bug: the binary does not contain the library %s of its manifest", l.File)
	}
	return cpu.Open(l.ISA, data)
}

// Suffixes of the profiles that are read beside the program, for CPUs and GPUs.
const (
	CPUProfile = ".profile"
	GPUProfile = ".cuda.profile"
)

// profile reads the named profile, or the one beside the program with the given suffix.
// It returns nil for a named profile of the other kind of device.
func (b *Binary) profile(named, ending string, gpu bool) (p *dispatch.Profile, err error) {
	if named == "" {
		return dispatch.ReadBeside(b.Program + ending)
	}
	if p, err = dispatch.Read(named); err != nil || gpu != p.OfGPU() {
		return nil, err
	}
	return p, nil
}

// Dispatch returns the dispatch table from the named profile or the one beside the
// program, else from the compiler's defaults.
func (b *Binary) Dispatch(profile string) ([]byte, error) {
	if b.Partitioned() {
		return nil, nil // each rank has its own
	}
	p, err := b.profile(profile, CPUProfile, false)
	if err != nil {
		return nil, Fault{err}
	}
	table, err := dispatch.Table(b.Manifest.Matmuls, p)
	return table, Blame(err)
}

// Weights is an open file of packed weights.
type Weights = packed.File

// Weights opens and loads the packed weights: the named file, else those embedded in
// the program, else the file beside it. The caller closes them.
func (b *Binary) Weights(path string) (*Weights, []byte, error) {
	if b.Partitioned() {
		return nil, nil, nil // each rank has its own
	}
	p, err := b.find(path)
	if err != nil {
		return nil, nil, Fault{err}
	}
	if err := b.check(p); err != nil {
		return p, nil, Fault{err}
	}
	data, err := p.Load(false)
	return p, data, Blame(err)
}

func (b *Binary) find(path string) (*Weights, error) {
	if path != "" {
		return packed.Open(path)
	}
	if p, err := packed.OpenBehind(b.Program); p != nil || err != nil {
		return p, err
	}
	path = b.Program + ".weights"
	p, err := packed.Open(path)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("%s is missing; put it beside the program, or set --weights FILE", path)
	}
	return p, err
}

// check compares the file's index with the manifest.
func (b *Binary) check(p *Weights) error {
	items := p.Items()
	if len(items) != len(b.Manifest.Weights) {
		return fmt.Errorf("%s has %d weights, expected %d; it belongs to another model", p.Name(), len(items), len(b.Manifest.Weights))
	}
	for i, w := range b.Manifest.Weights {
		it := items[i]
		if it.Name != w.Name || !slices.Equal(it.Index, w.Index) || it.DType != w.DType || it.Layout != w.Layout ||
			it.Rows != w.Rows || it.Cols != w.Cols || it.Offset != w.Offset || it.Bytes != w.Bytes || it.SparseOutliers != w.SparseOutliers {
			return fmt.Errorf("%s: weight %d is %s%v %s[%d, %d] of %d bytes at %d, expected %s%v %s[%d, %d] of %d bytes at %d; it belongs to another model",
				p.Name(), i, it.Name, it.Index, it.DType, it.Rows, it.Cols, it.Bytes, it.Offset, w.Name, w.Index, w.DType, w.Rows, w.Cols, w.Bytes, w.Offset)
		}
	}
	if _, random := p.Random(); random {
		return nil // says at every start what it is
	}
	if want := b.Manifest.WeightsID; want != "" && p.ID() != want {
		return fmt.Errorf("%s: the weights have ID %s, the program was compiled with %s; they belong to another model or another compile", p.Name(), p.ID(), want)
	}
	return nil
}
