package expand

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A testHost is a model of a few tensors and settings.
type testHost struct {
	tensors map[string][]int
	params  map[string]any // by NAME, MODULE.NAME or PATH.NAME
	config  map[string]any
	made    []*ir.Op
	layers  []int
	known   []string
	graph   *ir.Graph
	results []string
}

func (h *testHost) Tensor(std string) (Tensor, bool) {
	s, ok := h.tensors[std]
	return Tensor{File: "stored." + std, Transform: tensor.Source("stored." + std), Shape: s, Type: tensor.F16}, ok
}

func (h *testHost) Read(std string) bool {
	h.known = append(h.known, std)
	_, ok := h.tensors[std]
	return ok
}

func (h *testHost) Same(a, b string) bool            { return cmp.Equal(h.tensors[a], h.tensors[b]) }
func (h *testHost) Values(string) ([]float64, error) { return []float64{1, 2}, nil }

func (h *testHost) Config(_, key string) (any, bool) { v, ok := h.config[key]; return v, ok }
func (h *testHost) Library(string) *Library          { return nil }

func (h *testHost) Param(p *Declared, m *Reader, path string) (any, bool) {
	for _, key := range []string{path + "." + p.Name, m.Module + "." + p.Name, p.Name} {
		if v, ok := h.params[key]; ok {
			return v, true
		}
	}
	return nil, false
}

func (h *testHost) Weight(w *Weight) (*ir.Value, error) {
	v := &ir.Value{Name: strings.ReplaceAll(join(w.Path, w.Name), ".", "_"), Kind: ir.Weight, Transform: w.Transform, Type: ir.Type{Elem: tensor.F16}}
	if w.Computed {
		v.Type.Elem = tensor.F32
	}
	for _, n := range w.Shape {
		v.Type.Shape = append(v.Type.Shape, ir.Size{N: n})
	}
	return v, nil
}

func (h *testHost) State(path, name string, s *ir.StateType) (*ir.Value, error) {
	return &ir.Value{Name: strings.ReplaceAll(join(path, name), ".", "_"), Kind: ir.State, State: s}, nil
}

func (h *testHost) StateElem(string, int) tensor.DType { return tensor.F16 }

func (h *testHost) Op(def *ir.OpDef, args []*ir.Value, attrs ir.Attrs, names []string) ([]*ir.Value, error) {
	var list []ir.Arg
	for _, v := range args {
		list = append(list, ir.A(v))
	}
	o, err := ir.NewOpLike(def, list, attrs, fmt.Sprintf("v%d", len(h.made)))
	if err != nil {
		return nil, err
	}
	h.made = append(h.made, o)
	return o.Results, nil
}

func (h *testHost) Name(v *ir.Value, name string) { v.Name = name }

func (h *testHost) Graph(name string, dims []*ir.Dim) error {
	h.graph = &ir.Graph{Name: name, Dims: dims, Body: &ir.Block{}}
	return nil
}

func (h *testHost) Input(name string, t ir.Type) (*ir.Value, error) {
	v := &ir.Value{Name: name, Kind: ir.Input, Type: t}
	h.graph.Inputs = append(h.graph.Inputs, v)
	return v, nil
}

func (h *testHost) Results(names []string, values []*ir.Value) error {
	h.results, h.graph.Body.Yield = names, values
	return nil
}

func (h *testHost) Layer(i int) { h.layers = append(h.layers, i) }

// input returns a value of a graph with the given number of columns.
func input(name string, cols int) *ir.Value {
	return &ir.Value{Name: name, Kind: ir.Input, Type: ir.Type{Elem: tensor.F32, Shape: []ir.Size{{Dim: &ir.Dim{Name: "T", Role: "tokens"}}, {N: cols}}}}
}

// expanded expands module main of a text, as instance dec.1.main, with the input %x of eight
// columns if it has an argument, and returns its results and the ops.
func expanded(text string, h *testHost) (results []any, made string, err error) {
	lib, err := NewLibrary(map[string]string{"m.ifl": text})
	if err != nil {
		return nil, "", err
	}
	return expandedBy(lib, h)
}

// expandedBy expands module main of a library.
func expandedBy(lib *Library, h *testHost) (results []any, made string, err error) {
	m, err := lib.module("main")
	if err != nil {
		return nil, "", err
	}
	var args []any
	for range m.Args {
		args = append(args, input("x", 8))
	}
	results, err = New(lib, ops.Table, h).Call("main", "dec.1.main", args, nil)
	var lines []string
	for _, o := range h.made {
		lines = append(lines, o.String())
	}
	return results, strings.Join(lines, "\n"), err
}
