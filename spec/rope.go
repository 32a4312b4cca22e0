package spec

import (
	"slices"
)

// kind returns the scaling method from either of its two keys.
func (rs *RopeScaling) kind() string {
	if rs.RopeType != "" {
		return rs.RopeType
	}
	return canonicalWord(rs.Type)
}

// GrowsBeyondContext reports whether rope adapts to sequences of any length, so
// that max_position_embeddings does not limit them.
func (m *Model) GrowsBeyondContext() bool {
	rs := m.Net.RopeScaling
	return rs != nil && m.Net.PositionEmbedding == "rope" && rs.kind() == "dynamic" && rs.Alpha == 0
}

// maxRopeFactors is the maximum number of frequency divisors, half of a head.
const maxRopeFactors = 1 << 12

// ropeFactorsOf returns where the divisors that a stored tensor holds belong, or nil.
func (m *Model) ropeFactorsOf(name string) *[]float32 {
	if name == m.Net.RopeFactorsTensor {
		return &m.ropeFactors
	}
	if i := slices.Index(m.Net.RopeLongTensors, name); i == 0 || i == 1 {
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
