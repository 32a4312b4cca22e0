package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
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
	dt, cols, stored := e.DType, e.Shape[1], s.rowsOf(*e)
	e.DType, e.Bytes, e.collect = tensor.F32, 4*int64(e.Elements()), nil
	e.row = func(r int, out []byte) {
		row, other := make([]float32, cols), make([]float32, cols)
		if err := tensor.Decode(row, dt, stored(r)); err != nil {
			panic("bug: " + err.Error())
		}
		term(r, other)
		for c, v := range row {
			binary.LittleEndian.PutUint32(out[4*c:], math.Float32bits(v+other[c]))
		}
	}
	return nil
}

// rowsOf returns a function that returns the bytes of a row of a matrix.
func (s *Set) rowsOf(e entry) func(r int) []byte {
	size := e.DType.RowBytes(e.Shape[1])
	switch {
	case e.row != nil:
		return func(r int) []byte {
			out := make([]byte, size)
			e.row(r, out)
			return out
		}
	case e.collect != nil:
		return func(r int) []byte { return s.collected.get(&e)[r*size : (r+1)*size] }
	}
	return func(r int) []byte { return e.raw()[r*size : (r+1)*size] }
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
