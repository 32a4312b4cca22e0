package plot

import "image/color"

// A point is a place in units, x to the right, y down.
type point struct{ x, y float64 }

// A canvas is what figures are drawn on.
type canvas interface {
	// line draws connected segments, dashed in lengths of 3 if asked.
	line(points []point, c color.NRGBA, width float64, dashed bool)
	// area fills a polygon; the color's alpha counts.
	area(points []point, c color.NRGBA)
	// text writes a line of text with its baseline at a point.
	text(at point, s string, t textStyle)
}

// A textStyle says how text stands at its point.
type textStyle struct {
	size   float64
	c      color.NRGBA
	anchor float64 // which share of it is left of the point: 0, 0.5 or 1
	turned bool    // reads upwards
	bold   bool    // in themed pictures
}

// Colors of what is not data.
var (
	white    = color.NRGBA{255, 255, 255, 255}
	ink      = color.NRGBA{34, 34, 34, 255}
	softInk  = color.NRGBA{90, 90, 90, 255}
	gridLine = color.NRGBA{232, 232, 232, 255}
)

// palette is Okabe and Ito's, which people who see colors differently can tell
// apart ("Color Universal Design", 2008), the darker ones first.
var palette = []color.NRGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {230, 159, 0, 255}, {86, 180, 233, 255},
}

func colorOf(i int) color.NRGBA { return palette[i%len(palette)] }

// faint is a color that lets through what is below.
func faint(c color.NRGBA, alpha uint8) color.NRGBA {
	c.A = alpha
	return c
}
