//go:build unix

// Package binary is what a compiled model carries and how it is opened: its
// manifest, tokenizer, libraries, and the weights behind or beside it.
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

// Embedded is what the compiler put into the binary.
type Embedded struct {
	Manifest  string            // manifest.Manifest as JSON
	Tokenizer string            // tokenizer.Marshal's bytes; empty: the model has none
	IR        string            // the compiled module, as text
	Spec      string            // the specification, as YAML
	Libs      map[string]string // the model's code: manifest.Lib.File → shared library
}

// A Fault is an error that the call or a file is to blame for, not the work.
type Fault struct{ error }

// Unwrap gives the error itself.
func (f Fault) Unwrap() error { return f.error }

// Blame marks an error as the call's fault; nil stays nil.
func Blame(err error) error {
	if err == nil {
		return nil
	}
	return Fault{err}
}

// A Binary is a compiled model, opened as far as somebody asked.
type Binary struct {
	Embedded Embedded
	Manifest *manifest.Manifest
	Program  string // what the weights lie behind or beside

	tok *tokenizer.Tokenizer

	// Of a partitioned model.
	open   func(ranks.Settings) (ranks.Group, error) // its ranks: threads of this process, or those of the job that it joined
	ranks  device.Device                             // once it was opened
	status ranks.Status
	mu     sync.Mutex
	shards map[string]shard // by path
}

// Close closes what the binary has opened for the ranks of a partitioned model;
// its engine must have been closed before.
func (b *Binary) Close() { b.closeRanks() }

// Open reads the manifest; everything else waits until somebody asks. program
// is the path of the file that the weights lie behind, or beside as
// program.weights.
func Open(e Embedded, program string) (*Binary, error) {
	m := &manifest.Manifest{}
	if err := json.Unmarshal([]byte(e.Manifest), m); err != nil {
		return nil, fmt.Errorf("the embedded manifest cannot be read: %w; compile the model again", err)
	}
	if m.Format != manifest.Format {
		return nil, fmt.Errorf("the embedded manifest has format %d, this runtime reads %d; compile the model again", m.Format, manifest.Format)
	}
	b := &Binary{Embedded: e, Manifest: m, Program: program, status: ranks.Alone{}}
	b.open = b.threads
	return b, nil
}

// Tokenizer returns the model's tokenizer, read on first use.
func (b *Binary) Tokenizer() (*tokenizer.Tokenizer, error) {
	if b.tok != nil {
		return b.tok, nil
	}
	if len(b.Embedded.Tokenizer) == 0 {
		return nil, Fault{fmt.Errorf("%s was compiled without a tokenizer; give token ids with --ids", b.Manifest.Name)}
	}
	t, err := tokenizer.Unmarshal(b.Embedded.Tokenizer)
	if err != nil {
		return nil, fmt.Errorf("the embedded tokenizer cannot be read: %w; compile the model again", err)
	}
	b.tok = t
	return t, nil
}

// Encode gives the ids of a text as the model wants it, with its start token
// where it has one.
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

// EncodeWhole gives the ids of a text that a vector is made of: cut and made
// lower-case as the model's files say.
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

// CPU loads the model's code for this processor, or for the instruction set
// named.
func (b *Binary) CPU(isa string) (*cpu.Library, error) {
	if b.Partitioned() {
		return nil, Fault{fmt.Errorf("the model is compiled for the devices %s: no library of it is a whole model's", b.Manifest.Partition.Devices)}
	}
	i, err := cpu.ChooseISA(b.Manifest.Libs, isa)
	if err != nil {
		return nil, Fault{err}
	}
	l := b.Manifest.Libs[i]
	data, ok := b.Embedded.Libs[l.File]
	if !ok {
		return nil, fmt.Errorf("bug: the binary names the library %s but does not hold it", l.File)
	}
	return cpu.Open(l.ISA, data)
}

// The endings of the profiles that are read beside the program: of the
// processor, and of GPUs.
const (
	CPUProfile = ".profile"
	GPUProfile = ".cuda.profile"
)

// profile reads the profile named, or the one beside the program of that
// ending. One that was named for the other kind of device says nothing here.
func (b *Binary) profile(named, ending string, gpu bool) (p *dispatch.Profile, err error) {
	if named == "" {
		return dispatch.ReadBeside(b.Program + ending)
	}
	if p, err = dispatch.Read(named); err != nil || gpu != p.OfGPU() {
		return nil, err
	}
	return p, nil
}

// Dispatch makes the dispatch table from a profile that was named or lies
// beside the program, else from the compiler's defaults.
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

// Weights are an open file of packed weights.
type Weights = packed.File

// Weights opens the packed weights and reads them: the file named, else those
// at the end of the program, else the file beside it. The caller closes them.
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
		return nil, fmt.Errorf("%s is missing; it must lie beside the program, or be named with --weights FILE", path)
	}
	return p, err
}

// check compares the file's index with what the code was compiled for.
func (b *Binary) check(p *Weights) error {
	items := p.Items()
	if len(items) != len(b.Manifest.Weights) {
		return fmt.Errorf("%s holds %d weights, the model has %d; it belongs to another model", p.Name(), len(items), len(b.Manifest.Weights))
	}
	for i, w := range b.Manifest.Weights {
		it := items[i]
		if it.Name != w.Name || !slices.Equal(it.Index, w.Index) || it.DType != w.DType || it.Layout != w.Layout ||
			it.Rows != w.Rows || it.Cols != w.Cols || it.Offset != w.Offset || it.Bytes != w.Bytes || it.SparseOutliers != w.SparseOutliers {
			return fmt.Errorf("%s: weight %d is %s%v %s[%d, %d] of %d bytes at %d, the model needs %s%v %s[%d, %d] of %d bytes at %d; it belongs to another model",
				p.Name(), i, it.Name, it.Index, it.DType, it.Rows, it.Cols, it.Bytes, it.Offset, w.Name, w.Index, w.DType, w.Rows, w.Cols, w.Bytes, w.Offset)
		}
	}
	if want := b.Manifest.WeightsID; want != "" && p.ID() != want {
		return fmt.Errorf("%s: the weights are %s, the program was compiled with %s; they belong to another model or another compile", p.Name(), p.ID(), want)
	}
	return nil
}
