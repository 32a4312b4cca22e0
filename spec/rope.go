package spec

import (
	"fmt"
	"math"
	"slices"
)

// A ropeTable holds the arguments of a rope_table op besides its width.
type ropeTable struct {
	freqs     []float32 // nil: theta^(−2i/dim)
	scale     float64   // factor on cos and sin
	longFreqs []float32 // frequencies of sequences longer than longFrom
	longFrom  int
	longScale float64

	dynamicFrom   int // sequence length above which the base grows; 0: never
	dynamicFactor float64
}

func (r *ropeTable) attrs(a attrs, theta float64) attrs {
	if r.freqs == nil {
		a = a.num("theta", theta)
	} else {
		a = a.nums("freqs", float32s(r.freqs))
	}
	if r.scale != 1 {
		a = a.num("scale", r.scale)
	}
	if r.longFreqs != nil {
		a = a.nums("long_freqs", float32s(r.longFreqs)).int("long_from", r.longFrom)
		if r.longScale != r.scale {
			a = a.num("long_scale", r.longScale)
		}
	}
	if r.dynamicFrom > 0 {
		a = a.int("dynamic_from", r.dynamicFrom).num("dynamic_factor", r.dynamicFactor)
	}
	return a
}

// baseFrequencies returns theta^(−2i/dim) (Su et al. 2021, eq. 15), in the float32
// arithmetic of transformers.
func baseFrequencies(dim int, theta float64) []float32 {
	out := make([]float32, dim/2)
	for i := range out {
		exponent := float32(2*i) / float32(dim)
		out[i] = 1 / float32(math.Pow(float64(float32(theta)), float64(exponent)))
	}
	return out
}

// ropeScalings implements the values of rope_type as transformers'
// modeling_rope_utils computes them.
var ropeScalings = map[string]func(m rotary, rs *RopeScaling) (*ropeTable, error){
	"default": nil, "none": nil, "mrope": nil,
	"linear": rotary.ropeLinear, "ntk": rotary.ropeNTK, "dynamic": rotary.ropeDynamic, "yarn": rotary.ropeYarn,
	"llama3": rotary.ropeLlama3, "longrope": rotary.ropeLong, "proportional": rotary.ropeProportional,
}

// A rotary holds what determines a table of rotary frequencies.
type rotary struct {
	*Model
	dim     int // rotated channels of a head
	theta   float64
	scaling *RopeScaling
	local   bool // of layers with a sliding window, which have no stored divisors
}

// frequencies returns the rotary frequencies after scaling.
func (m rotary) frequencies() (*ropeTable, error) {
	table := &ropeTable{scale: 1}
	if rs := m.storedScaling(); rs != nil {
		kind := rs.kind()
		f, known := ropeScalings[kind]
		if !known && kind != "" {
			var names []string
			for k := range ropeScalings {
				names = append(names, k)
			}
			return nil, m.ropeError("type: have %q%s", kind, suggest(kind, names))
		}
		if f != nil {
			var err error
			if table, err = f(m, rs); err != nil {
				return nil, err
			}
		}
	}
	if m.ropeFactors != nil && !m.local {
		freqs := table.freqs
		if freqs == nil {
			freqs = baseFrequencies(m.dim, m.theta)
		}
		if len(m.ropeFactors) != len(freqs) {
			return nil, errAt(Pos{File: m.Spec.File}, "tensor %q: %d factors, want %d for %d rotated channels", m.Net.RopeFactorsTensor, len(m.ropeFactors), len(freqs), m.dim)
		}
		for i := range freqs {
			freqs[i] /= m.ropeFactors[i]
		}
		table.freqs = freqs
	}
	return table, nil
}

// storedScaling returns the scaling; with stored divisors it is LongRoPE with these.
func (m rotary) storedScaling() *RopeScaling {
	stored := m.ropeLongFactors
	if stored[0] == nil || m.local {
		return m.scaling
	}
	var rs RopeScaling
	if m.scaling != nil {
		rs = *m.scaling
	}
	rs.RopeType, rs.ShortFactor, rs.LongFactor = "longrope", float32s(stored[0]), float32s(stored[1])
	return &rs
}

// kind returns the scaling method from either of its two keys.
func (rs *RopeScaling) kind() string {
	if rs.RopeType != "" {
		return rs.RopeType
	}
	return canonicalWord(rs.Type)
}

// scales reports whether the section describes a scaling.
func (rs *RopeScaling) scales() bool {
	return rs != nil && ropeScalings[rs.kind()] != nil
}

func (m rotary) ropeError(format string, args ...any) error {
	return errAt(m.Spec.Pos("network_structure.rope_scaling"), "rope_scaling.%s", fmt.Sprintf(format, args...))
}

// ropeOriginal returns the context length that the frequencies were trained for.
func (m rotary) ropeOriginal(rs *RopeScaling) (float64, error) {
	if v, ok := number(m.Spec.Config["original_max_position_embeddings"]); ok && v > 0 {
		return v, nil // as in transformers, whatever rope_scaling says
	}
	if rs.Original > 0 {
		return rs.Original, nil
	}
	if m.Hyper.MaxContext > 0 {
		return float64(m.Hyper.MaxContext), nil
	}
	return 0, m.ropeError("original_max_position_embeddings: missing, and max_position_embeddings is missing too")
}

// ropeNTK is fixed NTK scaling: the base is multiplied by the factor f, and frequencies of d
// rotated channels are divided by f^(2/d) (GTE).
func (m rotary) ropeNTK(rs *RopeScaling) (*ropeTable, error) {
	if rs.Factor < 1 {
		return nil, m.ropeError("factor: have %g, want at least 1", rs.Factor)
	}
	freqs := baseFrequencies(m.dim, m.theta*rs.Factor)
	for i := range freqs {
		freqs[i] /= float32(math.Pow(rs.Factor, 2/float64(m.dim)))
	}
	return &ropeTable{freqs: freqs, scale: 1}, nil
}

func (m rotary) ropeLinear(rs *RopeScaling) (*ropeTable, error) {
	if rs.Factor < 1 {
		return nil, m.ropeError("factor: have %g, want at least 1", rs.Factor)
	}
	freqs := baseFrequencies(m.dim, m.theta)
	for i := range freqs {
		freqs[i] /= float32(rs.Factor)
	}
	return &ropeTable{freqs: freqs, scale: 1}, nil
}

// ropeProportional rotates only the first partial_rotary_factor of a head's pairs, with
// the frequencies that they have among all pairs (Gemma 4).
func (m rotary) ropeProportional(rs *RopeScaling) (*ropeTable, error) {
	stated, _ := number(m.Spec.Config["partial_rotary_factor"])
	part, factor := orElse(rs.PartialRotary, orElse(stated, 1)), orElse(rs.Factor, 1)
	if part < 0 || part > 1 || factor < 1 {
		return nil, m.ropeError("proportional: partial_rotary_factor %g, factor %g; want 0 to 1, and at least 1", part, factor)
	}
	freqs := baseFrequencies(m.dim, m.theta)
	for i := range freqs {
		if freqs[i] /= float32(factor); i >= int(part*float64(m.dim)/2) {
			freqs[i] = 0
		}
	}
	return &ropeTable{freqs: freqs, scale: 1}, nil
}

// ropeDynamic is dynamic NTK scaling: beyond the original context, the base grows
// with the sequence length; within it the frequencies are unscaled. With alpha
// (Hunyuan) the base is multiplied once, by alpha^(dim/(dim−2)).
func (m rotary) ropeDynamic(rs *RopeScaling) (*ropeTable, error) {
	dim, from := m.dim, m.Hyper.MaxContext
	switch {
	case dim < 4:
		return nil, m.ropeError("dynamic: %d rotated channels, want at least 4", dim)
	case rs.Alpha > 0:
		theta := m.theta * math.Pow(rs.Alpha, float64(dim)/float64(dim-2))
		return &ropeTable{freqs: baseFrequencies(dim, theta), scale: 1}, nil
	case rs.Factor < 1:
		return nil, m.ropeError("factor: have %g, want at least 1", rs.Factor)
	case from == 0:
		return nil, m.ropeError("dynamic: max_position_embeddings is missing")
	}
	return &ropeTable{scale: 1, dynamicFrom: from, dynamicFactor: rs.Factor}, nil
}

// GrowsBeyondContext reports whether rope adapts to sequences of any length, so
// that max_position_embeddings does not limit them.
func (m *Model) GrowsBeyondContext() bool {
	rs := m.Net.RopeScaling
	return rs != nil && m.Net.PositionEmbedding == "rope" && rs.kind() == "dynamic" && rs.Alpha == 0
}

// ropeLlama3 divides low frequencies and blends the middle ones (Llama 3.1).
func (m rotary) ropeLlama3(rs *RopeScaling) (*ropeTable, error) {
	old, err := m.ropeOriginal(rs)
	if err != nil {
		return nil, err
	}
	if rs.Factor < 1 || rs.LowFreq <= 0 || rs.HighFreq <= rs.LowFreq {
		return nil, m.ropeError("llama3: factor %g, low_freq_factor %g, high_freq_factor %g; want factor at least 1 and 0 < low < high", rs.Factor, rs.LowFreq, rs.HighFreq)
	}
	freqs := baseFrequencies(m.dim, m.theta)
	factor, lowF, highF := float32(rs.Factor), float32(rs.LowFreq), float32(rs.HighFreq)
	lowWave, highWave := old/rs.LowFreq, old/rs.HighFreq
	for i, f := range freqs {
		wave := float32(2*math.Pi) / f
		switch {
		case float64(wave) > lowWave:
			freqs[i] = f / factor
		case float64(wave) >= highWave:
			smooth := (float32(old)/wave - lowF) / (highF - lowF)
			freqs[i] = (1-smooth)*f/factor + smooth*f
		}
	}
	return &ropeTable{freqs: freqs, scale: 1}, nil
}

// ropeYarn is YaRN (Peng et al. 2023, §3.2–3.4). High frequencies are kept, low
// ones are divided, and those between are blended linearly. cos and sin are
// scaled by 0.1·ln(s)+1.
func (m rotary) ropeYarn(rs *RopeScaling) (*ropeTable, error) {
	old, err := m.ropeOriginal(rs)
	if err != nil {
		return nil, err
	}
	factor, err := m.ropeExtension(rs, old)
	if err != nil {
		return nil, err
	}
	dim, theta := m.dim, m.theta
	fast, slow := orElse(rs.BetaFast, 32), orElse(rs.BetaSlow, 1)
	channel := func(rotations float64) float64 {
		return float64(dim) * math.Log(old/(rotations*2*math.Pi)) / (2 * math.Log(theta))
	}
	low, high := channel(fast), channel(slow)
	if rs.Truncate == nil || *rs.Truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = math.Max(low, 0), math.Min(high, float64(dim-1))
	if low == high {
		high += 0.001
	}
	freqs := make([]float32, dim/2)
	for i := range freqs {
		pos := float32(math.Pow(theta, float64(float32(2*i)/float32(dim))))
		ramp := min(max((float32(i)-float32(low))/float32(high-low), 0), 1)
		keep := 1 - ramp
		freqs[i] = 1/(float32(factor)*pos)*(1-keep) + 1/pos*keep
	}
	scale := rs.AttnFactor
	if scale == 0 {
		scale = yarnScale(factor, 1)
		if rs.MScale != 0 && rs.MScaleAllDim != 0 {
			scale = yarnScale(factor, rs.MScale) / yarnScale(factor, rs.MScaleAllDim)
		}
	}
	return &ropeTable{freqs: freqs, scale: scale}, nil
}

// ropeExtension returns the factor by which the context is extended: without a stated one,
// the ratio of the contexts.
func (m rotary) ropeExtension(rs *RopeScaling, old float64) (float64, error) {
	switch {
	case rs.Factor > 0:
		return rs.Factor, nil
	case rs.Factor < 0 || m.Hyper.MaxContext == 0:
		return 0, m.ropeError("factor: have %g, want more than 0", rs.Factor)
	}
	return float64(m.Hyper.MaxContext) / old, nil
}

func yarnScale(factor, mscale float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*mscale*math.Log(factor) + 1
}

// ropeLong is LongRoPE (Ding et al. 2024): one divisor per frequency, with
// separate sets within and beyond the original context.
func (m rotary) ropeLong(rs *RopeScaling) (*ropeTable, error) {
	old, err := m.ropeOriginal(rs)
	if err != nil {
		return nil, err
	}
	dim := m.dim
	for name, f := range map[string][]float64{"short_factor": rs.ShortFactor, "long_factor": rs.LongFactor} {
		if len(f) != dim/2 || slices.Min(f) <= 0 {
			return nil, m.ropeError("%s: have %d divisors, want %d for %d rotated channels, all above 0", name, len(f), dim/2, dim)
		}
	}
	scale := rs.AttnFactor
	if scale == 0 {
		factor, err := m.ropeExtension(rs, old)
		if err != nil {
			return nil, err
		}
		scale = 1
		if factor > 1 {
			scale = math.Sqrt(1 + math.Log(factor)/math.Log(old))
		}
	}
	t := &ropeTable{scale: orElse(rs.ShortMScale, scale), longFrom: int(old), longScale: orElse(rs.LongMScale, scale)}
	for i := range dim / 2 {
		pos := float32(math.Pow(float64(float32(m.theta)), float64(float32(2*i)/float32(dim))))
		t.freqs = append(t.freqs, 1/(float32(rs.ShortFactor[i])*pos))
		t.longFreqs = append(t.longFreqs, 1/(float32(rs.LongFactor[i])*pos))
	}
	return t, nil
}

func orElse(v, otherwise float64) float64 {
	if v == 0 {
		return otherwise
	}
	return v
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
