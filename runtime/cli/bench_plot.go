//go:build unix

package cli

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/destination"
	"github.com/iflowc/iflowc/runtime/kit/plot"
)

// checkPlot returns an error if no plot can be written to path, before anything
// is measured; "" means no plot.
func checkPlot(path string) error {
	if path == "" {
		return nil
	}
	if err := plot.Check(path); err != nil {
		return wrong(fmt.Errorf("--plot %w", err))
	}
	return wrong(destination.Check("--plot", path))
}

// benchFigure plots a table of bench over the batch size: tok/s of each test, from
// the slowest repetition to the fastest, and the utilization of the machine.
func benchFigure(name string, rows []benchRow) *plot.Figure {
	f := &plot.Figure{}
	if len(rows) > 0 {
		f.Title = fmt.Sprintf("%s, %s, %d threads%s", name, rows[0].ISA, rows[0].Threads, rows[0].Limits.text())
	}
	batches := func() plot.Axis {
		a := plot.Axis{Label: "batch size", Log: true}
		for _, r := range rows {
			a.Ticks = append(a.Ticks, float64(r.Batch))
		}
		return a
	}
	shares := plot.Panel{Title: "Utilization", X: batches(), Y: plot.Axis{Label: "fraction of the limit", Percent: true}}
	for _, test := range testsOf(rows) {
		speed := plot.Series{Name: test, Points: true}
		bandwidth, peak := plot.Series{Name: test + " of bandwidth", Points: true}, plot.Series{Name: test + " of peak", Points: true}
		for _, r := range rows {
			if r.Test != test {
				continue
			}
			x := float64(r.Batch)
			speed.X, speed.Y = append(speed.X, x), append(speed.Y, r.TokS.Median)
			speed.Low, speed.High = append(speed.Low, r.TokS.Min), append(speed.High, r.TokS.Max)
			if r.Bandwidth != nil && strings.HasPrefix(test, "tg") {
				bandwidth.X, bandwidth.Y = append(bandwidth.X, x), append(bandwidth.Y, *r.Bandwidth)
			}
			if r.Peak != nil && !strings.HasPrefix(test, "tg") {
				peak.X, peak.Y = append(peak.X, x), append(peak.Y, *r.Peak)
			}
		}
		f.Panels = append(f.Panels, plot.Panel{Title: test + ", all sequences", X: batches(), Y: plot.Axis{Label: "tok/s"}, Series: []plot.Series{speed}})
		for _, s := range []plot.Series{bandwidth, peak} {
			if len(s.X) > 0 {
				shares.Series = append(shares.Series, s)
			}
		}
	}
	if len(shares.Series) > 0 {
		f.Panels = append(f.Panels, shares)
	}
	return f
}

// testsOf lists the tests of a table in order.
func testsOf(rows []benchRow) (tests []string) {
	seen := map[string]bool{}
	for _, r := range rows {
		if !seen[r.Test] {
			seen[r.Test] = true
			tests = append(tests, r.Test)
		}
	}
	return tests
}
