package spec

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
)

// reshaped are headers in which one tensor has another shape.
type reshaped struct {
	Headers
	name  string
	shape []int
}

func (h reshaped) Lookup(name string) (tensor.DType, []int, bool) {
	dt, shape, ok := h.Headers.Lookup(name)
	if name == h.name {
		shape = h.shape
	}
	return dt, shape, ok
}

// TestWrongShapes replaces the shape of each tensor of the tiny models' first
// layers by others with as many elements. The error must name that tensor or one
// that no longer fits it. Shapes that differ only in a dimension of 1 hold the
// same vector and are accepted.
func TestWrongShapes(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("testdata/families/*/expected.json")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no tiny models: %v", err)
	}
	for _, file := range irtest.Sample(t, 8, dirs) {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			s, err := Load(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if s.Graph != "" {
				t.Skip("a graph states its shapes itself; packing compares them with the files'")
			}
			set, err := s.OpenWeights()
			if err != nil {
				t.Fatal(err)
			}
			defer set.Close()
			h := HeadersOf(set)
			m, err := Resolve(s, h)
			if err != nil {
				t.Fatal(err)
			}
			used := usedTensors(t, m)
			for _, std := range m.Tensors() {
				if !used[m.tensors[std].File] {
					continue // known, and not read
				}
				if _, layer := layerForm(std); layer > 1 {
					continue
				}
				have := m.tensors[std]
				if strings.HasSuffix(std, "_norm.weight") && len(have.Shape) == 2 {
					continue // one norm per head; other models store it as a vector
				}
				if strings.HasSuffix(std, ".moe.gate.weight") && filepath.Base(dir) == "ernie4_5_vl_moe" {
					continue // of either layout
				}
				for _, shape := range otherShapes(have.Shape) {
					err := lowersWith(dir, reshaped{h, have.File, shape})
					if err == nil || !strings.Contains(err.Error(), "tensor \"") || strings.Contains(err.Error(), "bug") {
						t.Errorf("%s of shape %v in place of %v: error %v, want one that names a tensor", have.File, shape, have.Shape, err)
					}
				}
			}
		})
	}
}

// usedTensors returns the names of the tensors that a model's weights are made of.
func usedTensors(t *testing.T, m *Model) map[string]bool {
	t.Helper()
	mod, err := Lower(m)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, w := range mod.Weights {
		for _, pattern := range w.Transform.Sources() {
			names, err := storedNames(pattern, w.Count)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				used[name] = true
			}
		}
	}
	return used
}

// otherShapes returns other shapes of a matrix with as many elements; those of a
// vector are matrices of two columns.
func otherShapes(shape []int) (out [][]int) {
	n := 1
	for _, d := range shape {
		n *= d
	}
	if slices.Max(append([]int{1}, shape...)) == n { // a vector
		if n%2 == 0 && n > 2 {
			out = append(out, []int{n / 2, 2})
		}
		return out
	}
	out = [][]int{{n}, {n, 1}}
	if len(shape) == 2 && shape[0] != shape[1] {
		out = append(out, []int{shape[1], shape[0]})
	}
	return out
}

// resolvedAndLowered resolves and lowers a model spec with headers.
func resolvedAndLowered(s *Spec, h Headers) error {
	m, err := Resolve(s, h)
	if err == nil {
		_, err = Lower(m)
	}
	return err
}

// lowersWith lowers a folder's model with the given headers.
func lowersWith(dir string, h Headers) error {
	s, err := Load(dir, Options{})
	if err != nil {
		return err
	}
	return resolvedAndLowered(s, h)
}
