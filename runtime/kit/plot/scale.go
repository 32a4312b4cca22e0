package plot

import "math"

// A scale maps the values of an axis to units.
type scale struct {
	low, high float64 // values at the ends
	from, to  float64 // units of the ends
	log       bool
	ticks     []float64
}

// newScale returns a scale that fits the data.
func newScale(a *Axis, data []float64, from, to float64) scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1), from: from, to: to, log: a.Log}
	for _, v := range data {
		if !math.IsNaN(v) && !math.IsInf(v, 0) && (v > 0 || !a.Log) {
			s.low, s.high = min(s.low, v), max(s.high, v)
		}
	}
	switch {
	case a.Min != 0 || a.Max != 0:
		s.low, s.high = a.Min, a.Max
	case !(s.low <= s.high):
		s.low, s.high = 1, 2
	default:
		s.widen(a)
	}
	if !(s.low < s.high) { // a single value
		s.low, s.high = s.low-math.Abs(s.low)/2, s.high+math.Abs(s.high)/2+1
		if s.log {
			s.low = s.high / 4
		}
	}
	for _, v := range a.Ticks {
		if v >= s.low && v <= s.high {
			s.ticks = append(s.ticks, v)
		}
	}
	if a.Ticks == nil {
		s.ticks = s.round()
	}
	return s
}

// widen adds a margin around the data: a fifth on logarithmic axes without given ticks;
// on linear ones from 0 to a twentieth above.
func (s *scale) widen(a *Axis) {
	switch {
	case a.Log && a.Ticks == nil:
		s.low, s.high = s.low/1.2, s.high*1.2
	case a.Log:
		room := math.Pow(s.high/s.low, 0.03)
		s.low, s.high = s.low/room, s.high*room
	case s.low >= 0:
		s.low, s.high = 0, s.high*1.06
	default:
		room := (s.high - s.low) / 20
		s.low, s.high = s.low-room, s.high+room
	}
}

// shows reports whether a value can be shown.
func (s *scale) shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (v > 0 || !s.log)
}

// at returns the position of a value on the axis.
func (s *scale) at(v float64) float64 {
	share := (v - s.low) / (s.high - s.low)
	if s.log {
		share = math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return s.from + min(max(share, 0), 1)*(s.to-s.from)
}

// round returns round values for ticks: powers of ten, with 2 and 5 if there are few,
// or steps of 1, 2 or 5.
func (s *scale) round() (ticks []float64) {
	if s.log {
		factors := []float64{1}
		if s.high/s.low < 500 {
			factors = []float64{1, 2, 5}
		}
		for e := math.Floor(math.Log10(s.low)); e <= math.Ceil(math.Log10(s.high)); e++ {
			for _, f := range factors {
				if v := f * math.Pow(10, e); v >= s.low && v <= s.high {
					ticks = append(ticks, v)
				}
			}
		}
		return ticks
	}
	step := math.Pow(10, math.Floor(math.Log10(s.high-s.low)))
	for _, f := range []float64{0.1, 0.2, 0.5, 1, 2} {
		if (s.high-s.low)/(f*step) <= 6 {
			step *= f
			break
		}
	}
	for k := math.Ceil(s.low / step); k*step <= s.high*(1+1e-9); k++ {
		ticks = append(ticks, k*step)
	}
	return ticks
}
