package checkpoint

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// An Info describes one stored tensor. Shape is row-major, outermost dimension
// first, for every format (GGUF files store the reverse). A matrix of a linear
// layer is [outputs, inputs]. Offset and Bytes are the position and size in File.
// For a tensor that is not contiguous in the file (a strided view, a llama2.c Q8_0
// matrix), Bytes is the length that Set.Bytes returns and Offset the first byte.
type Info struct {
	Name   string
	DType  tensor.DType
	Shape  []int
	File   string
	Offset int64
	Bytes  int64
}

// Elements returns the number of elements.
func (i Info) Elements() int {
	n := 1
	for _, d := range i.Shape {
		n *= d
	}
	return n
}

// An entry is a stored tensor with the functions that read it.
type entry struct {
	Info
	file    *mapping
	stored  string                   // name of a stored type that DType cannot express
	taken   bool                     // is part of another entry
	collect func() []byte            // returns the bytes of a tensor that is not contiguous; else nil
	values  func(r int, x []float32) // computes a row of a tensor decoded on demand, whose bytes are these values in DType unless collect returns them; else nil
}

// contents holds the tensors and metadata of one file.
type contents struct {
	entries []entry
	meta    map[string]any
}

// A Set holds the stored tensors of one model.
type Set struct {
	format  string
	paths   []string
	maps    []*mapping
	entries []entry // sorted by name
	index   map[string]int
	meta    map[string]any

	notes  []string // messages for the user
	absent []string // tensors that an index names and its shards lack, sorted

	elsewhere func(name string) bool // while shards are opened: the index names another one for the tensor

	collected recent
}

// Format returns the file format: "safetensors", "gguf", "pickle" or "llama2.c".
func (s *Set) Format() string { return s.format }

// Files returns the files of the set, index files first.
func (s *Set) Files() []string { return slices.Clone(s.paths) }

// Meta returns the metadata of the files; it is never nil. For GGUF it holds the
// key/value pairs as Go scalars of the stored width, strings, and typed slices
// such as []string and []float32. For safetensors it holds the strings of
// __metadata__. For llama2.c it holds the header: the ints dim, hidden_dim,
// n_layers, n_heads, n_kv_heads, vocab_size, seq_len, version and group_size, and
// the bool shared_classifier.
func (s *Set) Meta() map[string]any { return s.meta }

// Tensors returns the stored tensors, sorted by name.
func (s *Set) Tensors() []Info {
	out := make([]Info, len(s.entries))
	for i, e := range s.entries {
		out[i] = e.Info
	}
	return out
}

// Absent returns the names, sorted, of the tensors that an index lists and its shards do
// not have. To read one is an error.
func (s *Set) Absent() []string { return slices.Clone(s.absent) }

// Lookup returns the tensor with the given name.
func (s *Set) Lookup(name string) (Info, bool) {
	i, ok := s.index[name]
	if !ok {
		return Info{}, false
	}
	return s.entries[i].Info, true
}

// Bytes returns a tensor's stored bytes, row-major. If they are contiguous in the
// file, the result is a view of the mapped file: do not write to it, and do not use
// it after Close.
func (s *Set) Bytes(name string) ([]byte, error) {
	i, ok := s.index[name]
	if !ok {
		return nil, s.missing(name)
	}
	e := &s.entries[i]
	switch {
	case e.collect != nil:
		return e.collect(), nil
	case e.values != nil:
		out := make([]byte, e.Bytes)
		size := e.DType.RowBytes(e.cols())
		for r := range len(out) / max(size, 1) {
			e.round(r, out[r*size:(r+1)*size])
		}
		return out, nil
	}
	return e.raw(), nil
}

// cols returns the number of columns of a tensor that is no scalar.
func (e *entry) cols() int { return e.Shape[len(e.Shape)-1] }

// round writes a row of values in the entry's type. NaN in f16 becomes 0, and what is too
// large the largest number.
func (e *entry) round(r int, out []byte) {
	x := make([]float32, e.cols())
	e.values(r, x)
	if e.DType == tensor.F16 {
		for i, v := range x {
			binary.LittleEndian.PutUint16(out[2*i:], finiteF16(v))
		}
		return
	}
	if err := tensor.Encode(out, e.DType, x); err != nil {
		panic("bug: " + err.Error())
	}
}

// RowDecoder returns the function that decodes one row of a tensor to its type. It is nil
// unless the tensor is decoded row by row.
func (s *Set) RowDecoder(name string) func(r int, out []byte) {
	if i, ok := s.index[name]; ok && s.entries[i].values != nil && s.entries[i].collect == nil {
		return s.entries[i].round
	}
	return nil
}

// Values returns the function that computes a row of a tensor without rounding it to the
// tensor's type. It is nil unless the files store something that the type only approximates.
func (s *Set) Values(name string) func(r int, x []float32) {
	if i, ok := s.index[name]; ok {
		return s.entries[i].values
	}
	return nil
}

// Float32 decodes a tensor to float32 values, row-major. They are those that the files
// store, also if the tensor's type only approximates them.
func (s *Set) Float32(name string) ([]float32, error) {
	info, _ := s.Lookup(name)
	out := make([]float32, info.Elements())
	if values := s.Values(name); values != nil {
		cols := info.Shape[len(info.Shape)-1]
		for r := range len(out) / max(cols, 1) {
			values(r, out[r*cols:(r+1)*cols])
		}
		return out, nil
	}
	raw, err := s.Bytes(name)
	if err != nil {
		return nil, err
	}
	if err := tensor.Decode(out, info.DType, raw); err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", info.File, name, err)
	}
	return out, nil
}

// Close unmaps the files. Views returned by Bytes become invalid.
func (s *Set) Close() error {
	var first error
	for _, m := range s.maps {
		if err := m.close(); err != nil && first == nil {
			first = err
		}
	}
	s.maps, s.entries, s.index = nil, nil, nil
	s.collected = recent{}
	return first
}

// add merges the contents of a file; duplicate names are errors.
func (s *Set) add(m *mapping, c *contents) error {
	for _, e := range c.entries {
		if s.elsewhere != nil && s.elsewhere(e.Name) {
			continue
		}
		if i, dup := s.index[e.Name]; dup {
			return fmt.Errorf("%s: tensor %q is in %s too; each name may occur once", m.path, e.Name, s.entries[i].File)
		}
		s.index[e.Name] = len(s.entries)
		s.entries = append(s.entries, e)
	}
	for k, v := range c.meta {
		if _, seen := s.meta[k]; !seen {
			s.meta[k] = v
		}
	}
	return nil
}

func (s *Set) sort() {
	slices.SortFunc(s.entries, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	for i, e := range s.entries {
		s.index[e.Name] = i
	}
}

func (s *Set) missing(name string) error {
	where := "the model"
	if len(s.paths) > 0 {
		where = s.paths[0]
	}
	if _, listed := slices.BinarySearch(s.absent, name); listed {
		return fmt.Errorf("%s: lists the tensor %q, which its file does not have; download the files again", where, name)
	}
	names := make([]string, len(s.entries))
	for i, e := range s.entries {
		names[i] = e.Name
	}
	best := spelling.Nearest(name, names)
	if best == "" {
		return fmt.Errorf("%s: no tensor %q among %d tensors; check the tensor names of the model spec", where, name, len(s.entries))
	}
	return fmt.Errorf("%s: no tensor %q among %d tensors; did you mean %q?", where, name, len(s.entries), best)
}
