package spec

import (
	"slices"
)

// GrowsBeyondContext reports whether rope adapts to sequences of any length, so
// that max_position_embeddings does not limit them.
func (m *Model) GrowsBeyondContext() bool {
	n := m.Net
	kind := n.word("rope_scaling.rope_type")
	if kind == "" {
		kind = canonicalWord(n.word("rope_scaling.type"))
	}
	return n.word("position_embedding") == "rope" && kind == "dynamic" && n.Params["rope_scaling.alpha"] == nil
}

// maxRopeFactors is the maximum number of frequency divisors, half of a head.
const maxRopeFactors = 1 << 12

// ropeFactorsOf returns where the divisors that a stored tensor holds belong, or nil.
func (m *Model) ropeFactorsOf(name string) *[]float32 {
	if name == m.Net.word("rope_factors_tensor") {
		return &m.ropeFactors
	}
	if i := slices.Index(m.Net.Words("rope_long_tensors"), name); i == 0 || i == 1 {
		return &m.ropeLongFactors[i]
	}
	return nil
}

func (m *Model) readRopeFactors(h Headers, name string) ([]float32, error) {
	_, shape, _ := h.Lookup(name)
	v, ok := h.(Values)
	if !ok || len(shape) != 1 || shape[0] > maxRopeFactors {
		return nil, errAt(Pos{File: m.Spec.File}, "tensor %q: shape %v, want one divisor for each pair of rotated channels", name, shape)
	}
	f, err := v.Float32(name)
	if err != nil {
		return nil, err
	}
	for _, x := range f {
		if !(x > 0) {
			return nil, errAt(Pos{File: m.Spec.File}, "tensor %q: divisor %g, want more than 0", name, x)
		}
	}
	return f, nil
}
