package loadgen

import (
	"fmt"
	"slices"
	"time"

	"github.com/iflowc/iflowc/runtime/kit/plot"
)

// curvePoints bounds the points of a curve; more are not seen.
const curvePoints = 500

// Figure draws the distributions of both times: which share of them (upwards)
// is at most so long (to the right, logarithmic).
func (r *Report) Figure() *plot.Figure {
	var first, between []time.Duration
	for _, x := range r.results {
		if x.Err == nil {
			first, between = append(first, x.First), append(between, x.Between...)
		}
	}
	title := fmt.Sprintf("%d requests, %.1f tok/s together", r.Answered, r.TokS)
	if r.Concurrency > 0 {
		title += fmt.Sprintf(", %d clients", r.Concurrency)
	}
	if r.Rate > 0 {
		title += fmt.Sprintf(", %g requests/s", r.Rate)
	}
	return &plot.Figure{Title: title, Panels: []plot.Panel{
		distribution("Time to the first token", first, r.First),
		distribution("Time between tokens", between, r.Between),
	}}
}

// distribution is the empirical distribution of times, with its percentiles
// marked.
func distribution(title string, list []time.Duration, s Spread) plot.Panel {
	list = slices.Clone(list)
	slices.Sort(list)
	curve := plot.Series{Steps: true}
	for k := range min(len(list), curvePoints) {
		at := (k + 1) * len(list) / min(len(list), curvePoints)
		curve.X = append(curve.X, max(float64(list[at-1].Microseconds())/1000, 1e-3))
		curve.Y = append(curve.Y, float64(at)/float64(len(list)))
	}
	p := plot.Panel{Title: title, X: plot.Axis{Label: "ms", Log: true}, Series: []plot.Series{curve},
		Y: plot.Axis{Label: "share that is at most so long", Min: 0, Max: 1, Percent: true, Ticks: []float64{0, 0.25, 0.5, 0.75, 1}}}
	if len(list) > 0 {
		p.Marks = []plot.Mark{{X: max(s.P50, 1e-3), Label: fmt.Sprintf("median %.1f", s.P50)}, {X: max(s.P99, 1e-3), Label: fmt.Sprintf("99 %% %.1f", s.P99)}}
	}
	return p
}
