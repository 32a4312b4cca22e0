package profile

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/iflowc/iflowc/runtime/dispatch"
)

// Sizes of a plot, in SVG units.
const (
	panelW, panelH = 360.0, 240.0
	marginL        = 52.0
	marginR        = 12.0
	marginT        = 30.0
	marginB        = 34.0
	panelsARow     = 3
	header         = 28.0
)

var (
	colours = []string{"#c0392b", "#2471a3", "#1e8449", "#7d3c98"}
	ticks   = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
)

// Plot draws the measured shapes of a profile as SVG: a panel a shape, the
// median time per row over the number of rows, both logarithmic, the interval
// as a band, the crossings M1 and M2 as dashed lines.
func Plot(p *dispatch.Profile) []byte {
	var shapes []dispatch.Shape
	for _, s := range p.Shapes {
		if s.Measured != nil && len(s.Measured.Rows) > 0 {
			shapes = append(shapes, s)
		}
	}
	columns := max(1, min(panelsARow, len(shapes)))
	lines := (len(shapes) + columns - 1) / columns
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="10">`+"\n",
		panelW*float64(columns), header+panelH*float64(lines))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="8" y="18" font-size="13">%s: microseconds a row over rows</text>`+"\n",
		html.EscapeString(p.Device))
	for i, s := range shapes {
		fmt.Fprintf(&b, `<g transform="translate(%g %g)">`+"\n", panelW*float64(i%columns), header+panelH*float64(i/columns))
		panel(&b, s)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// axes maps rows and microseconds a row to a panel's coordinates.
type axes struct{ rows0, rows1, us0, us1 float64 }

func (a axes) x(rows float64) float64 {
	return marginL + (panelW-marginL-marginR)*math.Log(rows/a.rows0)/math.Log(a.rows1/a.rows0)
}

func (a axes) y(us float64) float64 {
	return panelH - marginB - (panelH-marginT-marginB)*math.Log(us/a.us0)/math.Log(a.us1/a.us0)
}

func axesOf(m *dispatch.Measurement) axes {
	a := axes{float64(m.Rows[0]), float64(m.Rows[len(m.Rows)-1]), math.Inf(1), 0}
	for _, t := range m.Impls {
		for i, us := range t.Us {
			if us > 0 {
				a.us0 = min(a.us0, us/float64(m.Rows[i]))
				a.us1 = max(a.us1, us/float64(m.Rows[i]))
			}
		}
	}
	if a.rows1 == a.rows0 {
		a.rows1 = 2 * a.rows0
	}
	a.us0, a.us1 = 0.8*a.us0, 1.25*a.us1
	return a
}

func panel(b *strings.Builder, s dispatch.Shape) {
	m := s.Measured
	a := axesOf(m)
	fmt.Fprintf(b, `<text x="%g" y="14" font-size="11" font-weight="bold">[%d, %d] %s</text>`+"\n", marginL, s.N, s.K, html.EscapeString(s.DType))
	grid(b, a)
	for i, t := range m.Impls {
		curve(b, a, m.Rows, t, colours[i%len(colours)])
		fmt.Fprintf(b, `<text x="%g" y="26" fill="%s">%s</text>`+"\n", marginL+80*float64(i), colours[i%len(colours)], html.EscapeString(t.Impl))
	}
	for _, c := range []struct {
		name string
		rows int
	}{{"M1", m.M1}, {"M2", m.M2}} {
		if c.rows > 0 {
			x := a.x(float64(c.rows))
			fmt.Fprintf(b, `<path d="M%.1f %g V%g" stroke="#555" stroke-dasharray="3 3"/><text x="%.1f" y="%g" fill="#333">%s = %d</text>`+"\n",
				x, marginT, panelH-marginB, x+3, marginT+10, c.name, c.rows)
		}
	}
}

// grid draws the axes with their ticks.
func grid(b *strings.Builder, a axes) {
	for _, r := range ticks {
		if r < a.rows0 || r > a.rows1 {
			continue
		}
		x := a.x(r)
		fmt.Fprintf(b, `<path d="M%.1f %g V%g" stroke="#eee"/><text x="%.1f" y="%g" text-anchor="middle">%g</text>`+"\n", x, marginT, panelH-marginB, x, panelH-marginB+13, r)
	}
	for e := math.Floor(math.Log10(a.us0)); e <= math.Ceil(math.Log10(a.us1)); e++ {
		for _, f := range []float64{1, 2, 5} {
			us := f * math.Pow(10, e)
			if us < a.us0 || us > a.us1 {
				continue
			}
			fmt.Fprintf(b, `<path d="M%g %.1f H%g" stroke="#eee"/><text x="%g" y="%.1f" text-anchor="end">%.3g</text>`+"\n", marginL, a.y(us), panelW-marginR, marginL-4, a.y(us)+3, us)
		}
	}
	fmt.Fprintf(b, `<path d="M%g %g V%g H%g" fill="none" stroke="#333"/>`+"\n", marginL, marginT, panelH-marginB, panelW-marginR)
}

// curve draws an implementation's medians as a line in the band of its
// confidence intervals.
func curve(b *strings.Builder, a axes, rows []int, t dispatch.Time, colour string) {
	var line, upper, lower []string
	for i, us := range t.Us {
		if us <= 0 {
			continue
		}
		r := float64(rows[i])
		at := func(v float64) string { return fmt.Sprintf("%.1f,%.1f", a.x(r), a.y(min(max(v/r, a.us0), a.us1))) }
		line = append(line, at(us))
		upper = append(upper, at(t.High[i]))
		lower = append([]string{at(t.Low[i])}, lower...)
	}
	fmt.Fprintf(b, `<polygon points="%s %s" fill="%s" opacity="0.2"/><polyline points="%s" fill="none" stroke="%s" stroke-width="1.3"/>`+"\n",
		strings.Join(upper, " "), strings.Join(lower, " "), colour, strings.Join(line, " "), colour)
}
