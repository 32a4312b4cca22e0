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

// A Sample is a step that was measured.
type Sample struct {
	Tokens  int     // that it computed
	Seconds float64 // that it took
	Gap     float64 // from its end to the begin of the next one; 0: not known
}

// tileRows are the tokens that most kernels compute together.
const tileRows = 16

// A Latency is a model of how long steps take: a line in tokens and in tiles of
// tokens, times a factor that something else on the machine adds.
type Latency struct {
	Fixed    float64 `json:"fixed_s"`     // seconds of any step
	PerToken float64 `json:"per_token_s"` // more for each token
	PerTile  float64 `json:"per_tile_s"`  // more for each tile of 16 tokens, full or not
	Gap      float64 `json:"gap_s"`       // between two steps
	// Noise holds quantiles of measured time over the line's, at equal distances
	// from the least to that of 99 %: above is what stopped the whole machine.
	Noise []float64 `json:"noise"`
}

// Line is the time of an undisturbed step.
func (l *Latency) Line(tokens int) float64 {
	return l.Fixed + l.PerToken*float64(tokens) + l.PerTile*tiles(tokens)
}

func tiles(tokens int) float64 { return float64((tokens + tileRows - 1) / tileRows) }

// Draw is the time of a step with noise.
func (l *Latency) Draw(r *rand.Rand, tokens int) time.Duration {
	factor := 1.0
	if n := len(l.Noise); n > 1 {
		at := r.Float64() * float64(n-1)
		i := int(at)
		factor = l.Noise[i] + (at-float64(i))*(l.Noise[i+1]-l.Noise[i])
	}
	return time.Duration(l.Line(tokens) * factor * float64(time.Second))
}

// quantiles is how many values of noise a fit keeps.
const quantiles = 41

// Fit fits a latency to samples. Each sample weighs by the inverse of its time,
// so that relative errors count; a second and a third pass leave out those that
// lie far off, in which something else ran.
func Fit(samples []Sample) (*Latency, error) {
	if len(samples) < 2*quantiles {
		return nil, fmt.Errorf("%d steps are too few to fit a step-time model; expected at least %d", len(samples), 2*quantiles)
	}
	l := &Latency{}
	kept := samples
	for range 3 {
		beta, ok := leastSquares(kept, true)
		if ok && beta[2] < 0 { // tiles cost nothing that can be told from tokens
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
		l.Gap = gaps[len(gaps)/4] // writing the trace takes some of them
	}
	for _, v := range []*float64{&l.Fixed, &l.PerToken, &l.PerTile, &l.Gap} {
		*v = round(*v)
	}
	return l, nil
}

// round keeps four significant digits.
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

// Error is the median of the relative errors of a latency's line on samples.
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

// A Fitted is the file that holds a latency: how it was made, and how well it
// foretells steps that it was not fitted to.
type Fitted struct {
	About     string  `json:"about"`
	Steps     int     `json:"steps"`
	Held      int     `json:"held_out_steps"`
	HeldError float64 `json:"held_out_median_error"`
	Latency   Latency `json:"latency"`
}

//go:embed latency.json
var fitted []byte

// Measured is the latency in latency.json.
func Measured() (*Fitted, error) {
	f := &Fitted{}
	if err := json.Unmarshal(fitted, f); err != nil {
		return nil, fmt.Errorf("latency.json: %w", err)
	}
	return f, nil
}
