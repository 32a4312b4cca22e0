package checkpoint

import (
	"fmt"
	"slices"
	"sync"

	"github.com/iflowc/iflowc/ir/tensor"
)

// AddTo adds another matrix to a matrix: term adds its row r to zeros. The result is of
// type f32, and its rows are computed on demand. files are those that the other matrix
// comes from; Files returns them too.
func (s *Set) AddTo(name string, term func(r int, row []float32), files ...string) error {
	i, ok := s.index[name]
	if !ok {
		return s.missing(name)
	}
	e := &s.entries[i]
	if len(e.Shape) != 2 {
		return fmt.Errorf("%s: tensor %q of shape %v is no matrix", e.File, name, e.Shape)
	}
	for _, f := range files {
		if !slices.Contains(s.paths, f) {
			s.paths = append(s.paths, f)
		}
	}
	stored := s.rowsOf(*e)
	e.DType, e.Bytes, e.collect = tensor.F32, 4*int64(e.Elements()), nil
	e.values = func(r int, x []float32) {
		other := make([]float32, len(x))
		stored(r, x)
		term(r, other)
		for c, v := range other {
			x[c] += v
		}
	}
	return nil
}

// rowsOf returns a function that decodes a row of a matrix.
func (s *Set) rowsOf(e entry) func(r int, x []float32) {
	if e.values != nil {
		return e.values
	}
	size, raw := e.DType.RowBytes(e.Shape[1]), e.raw
	if e.collect != nil {
		raw = func() []byte { return s.collected.get(&e) }
	}
	return func(r int, x []float32) {
		if err := tensor.Decode(x, e.DType, raw()[r*size:][:size]); err != nil {
			panic("bug: " + err.Error())
		}
	}
}

// recent holds the bytes of the last matrices that are not contiguous in their file.
// Packing alternates between the parts of a fused projection, at most three.
type recent struct {
	mu   sync.Mutex
	name [4]string
	data [4][]byte
	next int
}

func (c *recent) get(e *entry) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, name := range c.name {
		if name == e.Name {
			return c.data[i]
		}
	}
	data := e.collect()
	c.name[c.next], c.data[c.next] = e.Name, data
	c.next = (c.next + 1) % len(c.data)
	return data
}
