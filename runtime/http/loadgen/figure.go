package loadgen

import (
	"fmt"
	"slices"
	"time"

	"github.com/iflowc/iflowc/runtime/kit/plot"
)

// curvePoints bounds the points of a curve; more would not be visible.
const curvePoints = 500

// Figure draws the cumulative distributions of TTFT and ITL on a logarithmic time axis.
func (r *Report) Figure() *plot.Figure {
	var ttft, itl []time.Duration
	for _, x := range r.results {
		if x.Err == nil {
			ttft, itl = append(ttft, x.TTFT), append(itl, x.ITL...)
		}
	}
	title := fmt.Sprintf("%d requests, %.1f tok/s", r.Answered, r.TokS)
	if r.Concurrency > 0 {
		title += fmt.Sprintf(", %d clients", r.Concurrency)
	}
	if r.Rate > 0 {
		title += fmt.Sprintf(", %g requests/s", r.Rate)
	}
	return &plot.Figure{Title: title, Panels: []plot.Panel{
		distribution("Time to first token (TTFT)", ttft, r.TTFT),
		distribution("Inter-token latency (ITL)", itl, r.ITL),
	}}
}

// distribution returns the empirical cumulative distribution of times, with marks at
// the median and the 99th percentile.
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
		Y: plot.Axis{Label: "cumulative fraction", Min: 0, Max: 1, Percent: true, Ticks: []float64{0, 0.25, 0.5, 0.75, 1}}}
	if len(list) > 0 {
		p.Marks = []plot.Mark{{X: max(s.P50, 1e-3), Label: fmt.Sprintf("median %.1f", s.P50)}, {X: max(s.P99, 1e-3), Label: fmt.Sprintf("p99 %.1f", s.P99)}}
	}
	return p
}
