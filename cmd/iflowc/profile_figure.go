//go:build unix

package main

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/kit/plot"
)

// rowTicks are the row counts on axes.
var rowTicks = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}

// profileFigure draws the measured shapes of a profile, one panel per shape:
// the median time in microseconds per row over the number of rows, both
// logarithmic, the interval as a band, the crossover points M1 and M2 as dashed
// lines.
func profileFigure(p *dispatch.Profile) *plot.Figure {
	f := &plot.Figure{Title: "Time of a matmul by number of rows: " + p.Device}
	for _, s := range p.Shapes {
		if s.Measured != nil && len(s.Measured.Rows) > 0 {
			f.Panels = append(f.Panels, shapePanel(s))
		}
	}
	return f
}

func shapePanel(s dispatch.Shape) plot.Panel {
	m := s.Measured
	p := plot.Panel{
		Title: fmt.Sprintf("weights [%d, %d], %s", s.N, s.K, s.DType),
		X:     plot.Axis{Label: "rows", Log: true, Ticks: rowTicks},
		Y:     plot.Axis{Label: "µs a row", Log: true},
	}
	for _, t := range m.Impls {
		c := plot.Series{Name: t.Impl}
		for i, us := range t.Us {
			if us > 0 {
				r := float64(m.Rows[i])
				c.X, c.Y = append(c.X, r), append(c.Y, us/r)
				c.Low, c.High = append(c.Low, t.Low[i]/r), append(c.High, t.High[i]/r)
			}
		}
		p.Series = append(p.Series, c)
	}
	if m.M1 > 0 {
		p.Marks = append(p.Marks, plot.Mark{X: float64(m.M1), Label: fmt.Sprintf("M1 = %d", m.M1)})
	}
	if m.M2 > 0 {
		p.Marks = append(p.Marks, plot.Mark{X: float64(m.M2), Label: fmt.Sprintf("M2 = %d", m.M2)})
	}
	slices.SortFunc(p.Marks, func(a, b plot.Mark) int { return int(a.X - b.X) })
	return p
}
