package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// Headers describes a model's files without reading values: the names, types
// and shapes of the tensors, and the metadata.
type Headers interface {
	Lookup(name string) (dtype tensor.DType, shape []int, ok bool)
	Names() []string
	Meta() map[string]any
}

// Values is an optional interface of Headers that returns the values of a small
// tensor. It is used for rope frequency factors, which GGUF stores as a tensor.
type Values interface {
	Float32(name string) ([]float32, error)
}

// Comparer is an optional interface of Headers that compares the values of two tensors.
type Comparer interface {
	Same(a, b string) bool
}

// setHeaders implements Headers, Values and Comparer for opened weight files.
type setHeaders struct{ *checkpoint.Set }

// HeadersOf returns the headers of opened weight files.
func HeadersOf(s *checkpoint.Set) Headers { return setHeaders{s} }

func (h setHeaders) Lookup(name string) (tensor.DType, []int, bool) {
	i, ok := h.Set.Lookup(name)
	return i.DType, i.Shape, ok
}

// Same reports whether two tensors have the same type and stored bytes.
func (h setHeaders) Same(a, b string) bool {
	x, err := h.Bytes(a)
	y, err2 := h.Bytes(b)
	i, _ := h.Set.Lookup(a)
	j, _ := h.Set.Lookup(b)
	return err == nil && err2 == nil && i.DType == j.DType && bytes.Equal(x, y)
}

func (h setHeaders) Names() []string {
	infos := h.Tensors()
	out := make([]string, len(infos))
	for i, t := range infos {
		out[i] = t.Name
	}
	return out
}

// OpenWeights opens the model spec's weight files: those that it names, or else
// those found in its folder. The caller closes the set.
func (s *Spec) OpenWeights() (*checkpoint.Set, error) {
	set, err := s.openFiles()
	if _, e := os.Stat(s.ModelDir); err != nil && errors.Is(e, fs.ErrNotExist) {
		return nil, s.noFiles("model_dir", fmt.Sprintf("no folder %s", s.ModelDir))
	}
	if errors.Is(err, checkpoint.ErrNoWeights) && s.Repository != "" {
		return nil, s.noFiles("model_dir", err.Error())
	}
	if err != nil {
		return nil, err
	}
	if f := s.ModelFileFormat; f != "" && f != set.Format() {
		set.Close()
		return nil, errAt(s.Pos("model_file_format"), "model_file_format: have %s, but %s is %s", f, s.ModelDir, set.Format())
	}
	if err := errors.Join(s.joinMedusa(set), s.joinDraft(set), s.joinDense(set)); err != nil {
		set.Close()
		return nil, err
	}
	return set, nil
}

func (s *Spec) openFiles() (*checkpoint.Set, error) {
	if len(s.ModelFiles) == 0 {
		return checkpoint.OpenDir(s.ModelDir)
	}
	var paths []string
	for _, f := range s.ModelFiles {
		if !filepath.IsLocal(f) && !filepath.IsAbs(f) {
			return nil, errAt(s.Pos("model_files"), "model_files: %q leads out of the model's folder", f)
		}
		if !filepath.IsAbs(f) {
			f = filepath.Join(s.ModelDir, f)
		}
		paths = append(paths, f)
	}
	if strings.HasSuffix(paths[0], ".index.json") {
		paths = paths[:1] // the first file is the index, which names the shards
	}
	set, err := checkpoint.Open(paths...)
	if errors.Is(err, fs.ErrNotExist) && s.Set("model_files") {
		return nil, s.noFiles("model_files", err.Error())
	}
	if err != nil && s.Set("model_files") {
		return nil, errAt(s.Pos("model_files"), "%v", err)
	}
	return set, err
}

// largestType returns the type of the largest tensor of numbers; f32 if there is none.
func largestType(h Headers) tensor.DType {
	largest, typ := 0, tensor.F32
	for _, name := range h.Names() {
		dt, shape, _ := h.Lookup(name)
		n := 1
		for _, d := range shape {
			n *= d
		}
		if n > largest && (dt.IsFloat() || dt.IsBlock()) {
			largest, typ = n, dt
		}
	}
	return typ
}
