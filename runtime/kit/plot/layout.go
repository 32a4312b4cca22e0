package plot

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
)

// Sizes in units. A panel is as wide as a column of a paper, with text of 8 points.
const (
	panelW, panelH = 360.0, 262.0
	marginL        = 54.0
	marginR        = 14.0
	marginT        = 50.0 // the panel's title and its legend
	marginB        = 42.0
	titleH         = 30.0
	noteH          = 16.0
	legendH        = 15.0 // additional line of the legend
	untitled       = 18.0 // reduction above a panel without a title
	gap            = 10.0
	textSize       = 10.0
	tickSize       = 4.0
)

func (f *Figure) columns() int {
	most := f.Columns
	if most < 1 {
		most = 3
	}
	return max(1, min(most, len(f.Panels)))
}

// panel returns the size of each panel.
func (f *Figure) panel() (w, h float64) {
	w, h = f.PanelWidth, f.PanelHeight
	if w == 0 {
		w = panelW
	}
	if h == 0 {
		h = panelH
	}
	return w, h
}

// top returns the position of the first row of panels.
func (f *Figure) top() float64 {
	top := gap / 2
	if f.Title != "" {
		top += titleH
	}
	if f.Note != "" {
		top += noteH
	}
	return top
}

// size returns the size of the figure.
func (f *Figure) size() (w, h float64) {
	rows := (len(f.Panels) + f.columns() - 1) / f.columns()
	panelW, panelH := f.panel()
	w = 2*gap + panelW*float64(f.columns())
	return max(w, 2*gap+textWidth(f.Title, 13)), f.top() + gap/2 + panelH*float64(rows)
}

func (f *Figure) draw(c canvas) {
	if f.Title != "" {
		c.text(point{gap + 4, 22}, f.Title, textStyle{size: 13, c: ink, bold: true})
	}
	if f.Note != "" {
		c.text(point{gap + 4, 38}, f.Note, textStyle{size: textSize, c: softInk})
	}
	panelW, panelH := f.panel()
	for i := range f.Panels {
		at := point{gap + panelW*float64(i%f.columns()), f.top() + panelH*float64(i/f.columns())}
		newLayout(&f.Panels[i], at, panelW, panelH).draw(c)
	}
}

// A layout is a panel with the scales of its axes.
type layout struct {
	*Panel
	x, y                     scale
	left, right, top, bottom float64
	titleAt                  point
	keys                     []point // positions of the legend's entries
}

func newLayout(p *Panel, at point, w, h float64) *layout {
	l := &layout{Panel: p, left: at.x + marginL, right: at.x + w - marginR, top: at.y + marginT, bottom: at.y + h - marginB, titleAt: point{at.x + marginL, at.y + 20}}
	if p.Title == "" {
		l.top -= untitled
	}
	l.placeLegend()
	var xs, ys []float64
	for _, s := range p.Series {
		xs = append(xs, s.X...)
		for i, y := range s.Y {
			ys = append(ys, y)
			if s.Low != nil {
				ys = append(ys, s.Low[i], s.High[i])
			}
		}
	}
	l.x = newScale(&p.X, xs, l.left, l.right)
	l.y = newScale(&p.Y, ys, l.bottom, l.top)
	return l
}

func (l *layout) draw(c canvas) {
	c.text(l.titleAt, l.Title, textStyle{size: 11.5, c: ink, bold: true})
	l.grid(c)
	for i, s := range l.Series {
		l.band(c, s, l.color(i))
	}
	for i, s := range l.Series {
		l.curve(c, s, l.color(i))
	}
	l.marks(c)
	l.axes(c)
	l.legend(c)
}

// grid draws lines at the ticks, behind everything else.
func (l *layout) grid(c canvas) {
	for _, v := range l.x.ticks {
		c.line([]point{{l.x.at(v), l.top}, {l.x.at(v), l.bottom}}, gridLine, 0.7, false)
	}
	for _, v := range l.y.ticks {
		c.line([]point{{l.left, l.y.at(v)}, {l.right, l.y.at(v)}}, gridLine, 0.7, false)
	}
}

// axes draws the axes, their ticks, numbers and labels.
func (l *layout) axes(c canvas) {
	c.line([]point{{l.left, l.top}, {l.left, l.bottom}, {l.right, l.bottom}}, ink, 0.9, false)
	for _, v := range l.x.ticks {
		x := l.x.at(v)
		c.line([]point{{x, l.bottom}, {x, l.bottom + tickSize}}, ink, 0.9, false)
		c.text(point{x, l.bottom + 15}, l.X.number(v), textStyle{size: textSize, c: ink, anchor: 0.5})
	}
	for _, v := range l.y.ticks {
		y := l.y.at(v)
		c.line([]point{{l.left - tickSize, y}, {l.left, y}}, ink, 0.9, false)
		c.text(point{l.left - 7, y + 3.5}, l.Y.number(v), textStyle{size: textSize, c: ink, anchor: 1})
	}
	c.text(point{(l.left + l.right) / 2, l.bottom + 31}, l.X.Label, textStyle{size: textSize, c: ink, anchor: 0.5})
	c.text(point{l.left - 40, (l.top + l.bottom) / 2}, l.Y.Label, textStyle{size: textSize, c: ink, anchor: 0.5, turned: true})
}

// placeLegend computes the positions of the legend's entries. It moves the axes down if
// the legend needs more than one line.
func (l *layout) placeLegend() {
	at := point{l.left, l.top - 9}
	for _, s := range l.Series {
		if s.Name == "" {
			l.keys = append(l.keys, point{})
			continue
		}
		width := 18 + textWidth(s.Name, textSize)
		if at.x > l.left && at.x+width > l.right {
			at = point{l.left, at.y + legendH}
			l.top += legendH
		}
		l.keys = append(l.keys, at)
		at.x += width + 14
	}
}

// legend draws the curves' names above the axes.
func (l *layout) legend(c canvas) {
	for i, s := range l.Series {
		if s.Name == "" {
			continue
		}
		at := l.keys[i]
		if s.Bare {
			c.area(s.Marker.shape(point{at.x + 9, at.y - 3.5}, 3.6), l.color(i))
		} else {
			c.line([]point{{at.x, at.y - 3.5}, {at.x + 14, at.y - 3.5}}, l.color(i), 2, s.Dashed)
		}
		c.text(point{at.x + 18, at.y}, s.Name, textStyle{size: textSize, c: ink})
	}
}

// color returns the color of a curve.
func (l *layout) color(i int) color.NRGBA {
	switch n := l.Series[i].Color; {
	case n < 0:
		return softInk
	case n > 0:
		return colorOf(n - 1)
	}
	return colorOf(i)
}

// marks draws the vertical marks with their labels.
func (l *layout) marks(c canvas) {
	var before float64
	for i, m := range l.Marks {
		x := l.x.at(m.X)
		c.line([]point{{x, l.top}, {x, l.bottom}}, softInk, 0.9, true)
		y := l.top + 11
		if i > 0 && x < before { // avoid the previous mark's label
			y += 12
		}
		style, at := textStyle{size: textSize, c: softInk}, x+3
		if width := textWidth(m.Label, textSize); at+width > l.right {
			style.anchor, at = 1, x-3
		} else {
			before = at + width + 3
		}
		c.text(point{at, y}, m.Label, style)
	}
}

// places returns the points of a curve that the axes can show, with their indices.
func (l *layout) places(s Series, values []float64) (points []point, at []int) {
	for i, v := range values {
		if l.y.shows(s.Y[i]) && l.x.shows(s.X[i]) && l.y.shows(v) {
			points, at = append(points, point{l.x.at(s.X[i]), l.y.at(v)}), append(at, i)
		}
	}
	return points, at
}

// band fills the interval around a curve.
func (l *layout) band(c canvas, s Series, color color.NRGBA) {
	if s.Low == nil || s.Points {
		return
	}
	outline, _ := l.places(s, s.High)
	lower, _ := l.places(s, s.Low)
	for i := range lower {
		outline = append(outline, lower[len(lower)-1-i])
	}
	if len(lower) > 1 {
		c.area(outline, faint(color, 56))
	}
}

// curve draws a curve and, if set, its points.
func (l *layout) curve(c canvas, s Series, color color.NRGBA) {
	points, at := l.places(s, s.Y)
	line := points
	if s.Steps {
		line = nil
		for i, p := range points {
			if i > 0 {
				line = append(line, point{p.x, points[i-1].y})
			}
			line = append(line, p)
		}
	}
	if len(line) > 1 && !s.Bare {
		c.line(line, color, 1.6, s.Dashed)
	}
	for k, p := range points {
		if i := at[k]; i < len(s.Labels) {
			t := s.Labels[i]
			c.text(point{p.x + t.X, p.y + t.Y}, t.Text, textStyle{size: textSize, c: color, anchor: t.Anchor})
		}
	}
	if !s.Points && !s.Bare && len(points) > 1 {
		return
	}
	for k, p := range points {
		if i := at[k]; s.Low != nil && l.y.shows(s.Low[i]) {
			low, high := l.y.at(s.Low[i]), l.y.at(s.High[i])
			for _, bar := range [][]point{{{p.x, low}, {p.x, high}}, {{p.x - 3, low}, {p.x + 3, low}}, {{p.x - 3, high}, {p.x + 3, high}}} {
				c.line(bar, color, 1, false)
			}
		}
		r := 2.8
		if s.Bare {
			r = 3.4
		}
		c.area(s.Marker.shape(p, r), color)
	}
}

// shape returns the outline of a marker around a point.
func (m Marker) shape(p point, r float64) []point {
	switch m {
	case Square:
		return []point{{p.x - r, p.y - r}, {p.x + r, p.y - r}, {p.x + r, p.y + r}, {p.x - r, p.y + r}}
	case Triangle:
		return []point{{p.x, p.y - 1.3*r}, {p.x + 1.2*r, p.y + 0.9*r}, {p.x - 1.2*r, p.y + 0.9*r}}
	}
	return disc(p, r)
}

// number formats the number of a tick.
func (a *Axis) number(v float64) string {
	if a.Percent {
		return strconv.FormatFloat(math.Round(1e4*v)/1e2, 'f', -1, 64) + " %"
	}
	if v >= 1e6 || v != 0 && math.Abs(v) < 1e-3 {
		return fmt.Sprintf("%.0e", v)
	}
	return strconv.FormatFloat(math.Round(1e6*v)/1e6, 'f', -1, 64)
}
