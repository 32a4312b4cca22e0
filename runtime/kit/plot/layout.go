package plot

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
)

// Sizes in units; a panel is as wide as a column of a paper at 8 point text.
const (
	panelW, panelH = 360.0, 262.0
	marginL        = 54.0
	marginR        = 14.0
	marginT        = 50.0 // the panel's title and its legend
	marginB        = 42.0
	titleH         = 30.0
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

// size is that of the whole figure.
func (f *Figure) size() (w, h float64) {
	rows := (len(f.Panels) + f.columns() - 1) / f.columns()
	h = gap + panelH*float64(rows)
	if f.Title != "" {
		h += titleH
	}
	w = 2*gap + panelW*float64(f.columns())
	return max(w, 2*gap+textWidth(f.Title, 13)), h
}

func (f *Figure) draw(c canvas) {
	top := gap / 2
	if f.Title != "" {
		c.text(point{gap + 4, 22}, f.Title, textStyle{size: 13, c: ink})
		top += titleH
	}
	for i := range f.Panels {
		at := point{gap + panelW*float64(i%f.columns()), top + panelH*float64(i/f.columns())}
		newLayout(&f.Panels[i], at).draw(c)
	}
}

// A layout is a panel with the scales of its axes.
type layout struct {
	*Panel
	x, y                     scale
	left, right, top, bottom float64
	titleAt                  point
}

func newLayout(p *Panel, at point) *layout {
	l := &layout{Panel: p, left: at.x + marginL, right: at.x + panelW - marginR, top: at.y + marginT, bottom: at.y + panelH - marginB, titleAt: point{at.x + marginL, at.y + 20}}
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
	c.text(l.titleAt, l.Title, textStyle{size: 11.5, c: ink})
	l.grid(c)
	for i, s := range l.Series {
		l.band(c, s, colorOf(i))
	}
	for i, s := range l.Series {
		l.curve(c, s, colorOf(i))
	}
	l.marks(c)
	l.axes(c)
	l.legend(c)
}

// grid draws lines at the ticks, behind everything.
func (l *layout) grid(c canvas) {
	for _, v := range l.x.ticks {
		c.line([]point{{l.x.at(v), l.top}, {l.x.at(v), l.bottom}}, gridLine, 0.7, false)
	}
	for _, v := range l.y.ticks {
		c.line([]point{{l.left, l.y.at(v)}, {l.right, l.y.at(v)}}, gridLine, 0.7, false)
	}
}

// axes draws the two axes, their ticks, numbers and names.
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

// legend names the curves above the axes, from the left.
func (l *layout) legend(c canvas) {
	x, y := l.left, l.top-9
	for i, s := range l.Series {
		if s.Name == "" {
			continue
		}
		c.line([]point{{x, y - 3.5}, {x + 14, y - 3.5}}, colorOf(i), 2, false)
		c.text(point{x + 18, y}, s.Name, textStyle{size: textSize, c: ink})
		x += 18 + textWidth(s.Name, textSize) + 14
	}
}

// marks draws the lines that mean something, each named beside its head.
func (l *layout) marks(c canvas) {
	var before float64
	for i, m := range l.Marks {
		x := l.x.at(m.X)
		c.line([]point{{x, l.top}, {x, l.bottom}}, softInk, 0.9, true)
		y := l.top + 11
		if i > 0 && x < before { // the last one's name is there
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

// places are the points of a curve that the axes can show, with their indices.
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

// curve draws a curve, and its points where asked.
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
	if len(line) > 1 {
		c.line(line, color, 1.6, false)
	}
	if !s.Points && len(points) > 1 {
		return
	}
	for k, p := range points {
		if i := at[k]; s.Low != nil && l.y.shows(s.Low[i]) {
			low, high := l.y.at(s.Low[i]), l.y.at(s.High[i])
			for _, bar := range [][]point{{{p.x, low}, {p.x, high}}, {{p.x - 3, low}, {p.x + 3, low}}, {{p.x - 3, high}, {p.x + 3, high}}} {
				c.line(bar, color, 1, false)
			}
		}
		c.area(disc(p, 2.8), color)
	}
}

// number writes a tick.
func (a *Axis) number(v float64) string {
	if a.Percent {
		return strconv.FormatFloat(math.Round(1e4*v)/1e2, 'f', -1, 64) + " %"
	}
	if v >= 1e6 || v != 0 && math.Abs(v) < 1e-3 {
		return fmt.Sprintf("%.0e", v)
	}
	return strconv.FormatFloat(math.Round(1e6*v)/1e6, 'f', -1, 64)
}
