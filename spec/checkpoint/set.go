package checkpoint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// An Info describes one stored tensor. Shape is row-major, outermost dimension
// first, for every format (GGUF files store the reverse); a matrix of a linear
// layer is [outputs, inputs]. Offset and Bytes are where it lies in File; a
// tensor that is not stored as one run (a strided view, a llama2.c Q8_0
// matrix) has the Bytes that Set.Bytes returns and the Offset of its start.
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

// An entry is a stored tensor and how to get its bytes.
type entry struct {
	Info
	file    *mapping
	stored  string                  // the name of a type that DType does not tell
	taken   bool                    // part of another entry now
	collect func() []byte           // for tensors that are not one run of bytes; else nil
	row     func(r int, out []byte) // for tensors whose rows are decoded one by one; else nil
}

// contents is what a format's reader finds in one file.
type contents struct {
	entries []entry
	meta    map[string]any
}

// A Set is the stored tensors of one model.
type Set struct {
	format  string
	paths   []string
	maps    []*mapping
	entries []entry // sorted by name
	index   map[string]int
	meta    map[string]any

	notes []string // lines for the user
}

// Format names the container: "safetensors", "gguf", "pickle" or "llama2.c".
func (s *Set) Format() string { return s.format }

// Files lists the files the set was read from, index files first.
func (s *Set) Files() []string { return slices.Clone(s.paths) }

// Meta returns the metadata of the files, never nil: a GGUF file's key/value pairs
// (Go scalars of the stored width, strings, and typed slices: []string,
// []float32, []int32 … for arrays), a safetensors file's __metadata__ strings,
// or a llama2.c header as ints (dim, hidden_dim, n_layers, n_heads, n_kv_heads,
// vocab_size, seq_len, version, group_size) and the bool shared_classifier.
func (s *Set) Meta() map[string]any { return s.meta }

// Tensors lists the stored tensors by name.
func (s *Set) Tensors() []Info {
	out := make([]Info, len(s.entries))
	for i, e := range s.entries {
		out[i] = e.Info
	}
	return out
}

// Lookup finds a tensor by its exact name.
func (s *Set) Lookup(name string) (Info, bool) {
	i, ok := s.index[name]
	if !ok {
		return Info{}, false
	}
	return s.entries[i].Info, true
}

// Bytes returns a tensor's stored bytes, row-major: a view of the mapped file
// wherever they are one run (do not write to it, nor use it after Close).
func (s *Set) Bytes(name string) ([]byte, error) {
	i, ok := s.index[name]
	if !ok {
		return nil, s.missing(name)
	}
	e := &s.entries[i]
	switch {
	case e.collect != nil:
		return e.collect(), nil
	case e.row != nil:
		out := make([]byte, e.Bytes)
		size := e.Shape[len(e.Shape)-1] * e.DType.BlockBytes()
		for r := range len(out) / max(size, 1) {
			e.row(r, out[r*size:(r+1)*size])
		}
		return out, nil
	}
	return e.file.data[e.Offset : e.Offset+e.Bytes : e.Offset+e.Bytes], nil
}

// RowDecoder returns the function that decodes one row of a tensor whose rows are
// made one by one; nil for other tensors, and for none of that name.
func (s *Set) RowDecoder(name string) func(r int, out []byte) {
	if i, ok := s.index[name]; ok {
		return s.entries[i].row
	}
	return nil
}

// Float32 decodes a tensor to float32 values, row-major.
func (s *Set) Float32(name string) ([]float32, error) {
	raw, err := s.Bytes(name)
	if err != nil {
		return nil, err
	}
	info, _ := s.Lookup(name)
	out := make([]float32, info.Elements())
	if err := tensor.Decode(out, info.DType, raw); err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", info.File, name, err)
	}
	return out, nil
}

// Close unmaps the files; views from Bytes are invalid afterwards.
func (s *Set) Close() error {
	var first error
	for _, m := range s.maps {
		if err := m.close(); err != nil && first == nil {
			first = err
		}
	}
	s.maps, s.entries, s.index = nil, nil, nil
	return first
}

// add merges one file's contents; a name may occur once in all files.
func (s *Set) add(m *mapping, c *contents) error {
	for _, e := range c.entries {
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
	names := make([]string, len(s.entries))
	for i, e := range s.entries {
		names[i] = e.Name
	}
	best := spelling.Nearest(name, names)
	if best == "" {
		return fmt.Errorf("%s: no tensor %q among %d; check the tensor names of the model spec", where, name, len(s.entries))
	}
	return fmt.Errorf("%s: no tensor %q among %d; did you mean %q?", where, name, len(s.entries), best)
}
