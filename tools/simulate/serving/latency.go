package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// A Sample is a measured step.
type Sample struct {
	Tokens  int     // computed tokens
	Seconds float64 // duration
	Gap     float64 // from its end to the start of the next step; 0: unknown
}

// tileRows is the number of tokens per tile of most kernels.
const tileRows = 16

// A Latency is a model of step latency: linear in tokens and in tiles of tokens, times
// a random factor for other load on the machine.
type Latency struct {
	Fixed    float64 `json:"fixed_s"`     // seconds per step
	PerToken float64 `json:"per_token_s"` // additional seconds per token
	PerTile  float64 `json:"per_tile_s"`  // additional seconds per tile of 16 tokens, full or partial
	Gap      float64 `json:"gap_s"`       // seconds between two steps
	// Noise holds equidistant quantiles of measured time divided by Line, from the
	// minimum to the 99th percentile. Larger values are stalls of the whole machine.
	Noise []float64 `json:"noise"`
}

// Line returns the time of an undisturbed step.
func (l *Latency) Line(tokens int) float64 {
	return l.Fixed + l.PerToken*float64(tokens) + l.PerTile*tiles(tokens)
}

func tiles(tokens int) float64 { return float64((tokens + tileRows - 1) / tileRows) }

// Draw returns the time of a step with random noise.
func (l *Latency) Draw(r *rand.Rand, tokens int) time.Duration {
	factor := 1.0
	if n := len(l.Noise); n > 1 {
		at := r.Float64() * float64(n-1)
		i := int(at)
		factor = l.Noise[i] + (at-float64(i))*(l.Noise[i+1]-l.Noise[i])
	}
	return time.Duration(l.Line(tokens) * factor * float64(time.Second))
}

// quantiles is the number of noise quantiles of a fit.
const quantiles = 41

// Fit fits a latency to samples by weighted least squares. The weight of a sample is
// the inverse of its time, to minimize relative errors. A second and a third pass omit
// samples far from the fit, which other load has disturbed.
func Fit(samples []Sample) (*Latency, error) {
	if len(samples) < 2*quantiles {
		return nil, fmt.Errorf("%d steps are too few to fit a step-time model; expected at least %d", len(samples), 2*quantiles)
	}
	l := &Latency{}
	kept := samples
	for range 3 {
		beta, ok := leastSquares(kept, true)
		if ok && beta[2] < 0 { // the cost of tiles cannot be separated from the cost of tokens
			beta, ok = leastSquares(kept, false)
		}
		if !ok || beta[0] < 0 || beta[1] < 0 {
			return nil, errors.New("the steps do not tell what tokens cost: record prompts and several clients")
		}
		l.Fixed, l.PerToken, l.PerTile = beta[0], beta[1], beta[2]
		kept = nil
		ratios := l.ratios(samples)
		slices.Sort(ratios)
		most := 2 * ratios[len(ratios)/2]
		for _, s := range samples {
			if s.Seconds <= most*l.Line(s.Tokens) {
				kept = append(kept, s)
			}
		}
	}
	ratios := l.ratios(samples)
	slices.Sort(ratios)
	for i := range quantiles {
		l.Noise = append(l.Noise, round(ratios[i*99*(len(ratios)-1)/100/(quantiles-1)]))
	}
	var gaps []float64
	for _, s := range samples {
		if s.Gap > 0 {
			gaps = append(gaps, s.Gap)
		}
	}
	if slices.Sort(gaps); len(gaps) > 0 {
		l.Gap = gaps[len(gaps)/4] // some gaps include writing the trace
	}
	for _, v := range []*float64{&l.Fixed, &l.PerToken, &l.PerTile, &l.Gap} {
		*v = round(*v)
	}
	return l, nil
}

// round rounds to four significant digits.
func round(v float64) float64 {
	digits, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return digits
}

func (l *Latency) ratios(samples []Sample) (list []float64) {
	for _, s := range samples {
		list = append(list, s.Seconds/l.Line(s.Tokens))
	}
	return list
}

// Error returns the median relative error of a latency's Line on samples.
func (l *Latency) Error(samples []Sample) float64 {
	var list []float64
	for _, s := range samples {
		list = append(list, math.Abs(s.Seconds/l.Line(s.Tokens)-1))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// leastSquares solves seconds = b0 + b1·tokens + b2·tiles, without tiles b2 = 0, by
// the normal equations.
func leastSquares(samples []Sample, byTile bool) (b [3]float64, ok bool) {
	var m [3][4]float64
	for _, s := range samples {
		x := [4]float64{1, float64(s.Tokens), tiles(s.Tokens), s.Seconds}
		w := 1 / (s.Seconds * s.Seconds)
		for i := range 3 {
			for j := range 4 {
				m[i][j] += w * x[i] * x[j]
			}
		}
	}
	if !byTile {
		m[2], m[0][2], m[1][2] = [4]float64{2: 1}, 0, 0
	}
	for i := range 3 {
		if math.Abs(m[i][i]) < 1e-9 {
			return b, false
		}
		for j := range 3 {
			if j != i {
				f := m[j][i] / m[i][i]
				for k := range 4 {
					m[j][k] -= f * m[i][k]
				}
			}
		}
	}
	for i := range 3 {
		b[i] = m[i][3] / m[i][i]
	}
	return b, true
}

// A Fitted is the content of a latency file: the latency, its origin, and its error on
// steps to which it was not fitted.
type Fitted struct {
	About     string  `json:"about"`
	Steps     int     `json:"steps"`
	Held      int     `json:"held_out_steps"`
	HeldError float64 `json:"held_out_median_error"`
	Latency   Latency `json:"latency"`
}

//go:embed latency.json
var fitted []byte

// Measured returns the latency in latency.json.
func Measured() (*Fitted, error) {
	f := &Fitted{}
	if err := json.Unmarshal(fitted, f); err != nil {
		return nil, fmt.Errorf("latency.json: %w", err)
	}
	return f, nil
}
