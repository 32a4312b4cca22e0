package tune

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/dtype"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
)

// ActKinds lists the kinds of packed activations in the order of ifl_act_kind.
var ActKinds = []string{"f32", "a8_b32", "a8_b64", "bf16", "a8_b16"}

// MatmulShapes returns the distinct shapes of a compiled model's matmuls.
func MatmulShapes(matmuls []manifest.Matmul) ([]Shape, error) {
	var shapes []Shape
	for _, s := range matmuls {
		dt, ok := dtype.Parse(s.DType)
		kind := slices.Index(ActKinds, s.Act)
		if !ok || kind < 0 || len(s.Symbols) != len(s.Impls) || len(s.Tiles) != len(s.Impls) {
			return nil, fmt.Errorf("matmul %s: %s weights with %q activations cannot be measured; compile the model again", s.Name, s.DType, s.Act)
		}
		shape := Shape{N: s.N, K: s.K, DType: s.DType, Act: kind, PanelBytes: packed.PanelStride(dt, s.K)}
		for i, impl := range s.Impls {
			shape.Candidates = append(shape.Candidates, Candidate{Impl: impl, Symbol: s.Symbols[i], Tile: s.Tiles[i]})
		}
		if !slices.ContainsFunc(shapes, func(o Shape) bool { return o.N == s.N && o.K == s.K && o.DType == s.DType }) {
			shapes = append(shapes, shape)
		}
	}
	return shapes, nil
}

// Slab returns the bytes of weight copies needed so that no run finds its weights in a
// cache of the machine.
func Slab(shapes []Shape, m dispatch.Machine) (int64, error) {
	cached, err := llc(m)
	if err != nil {
		return 0, err
	}
	largest := int64(0)
	for _, s := range shapes {
		largest = max(largest, s.PanelBytes*int64((s.N+15)/16))
	}
	return max(4*cached, 2*largest), nil
}
