package plot

import "image/color"

// A point is a position in units, x to the right, y down.
type point struct{ x, y float64 }

// A canvas is an output format that figures are drawn on.
type canvas interface {
	// line draws connected segments; dashes are 3 units long.
	line(points []point, c color.NRGBA, width float64, dashed bool)
	// area fills a polygon with alpha blending.
	area(points []point, c color.NRGBA)
	// text draws a line of text with its baseline at a point.
	text(at point, s string, t textStyle)
}

// A textStyle is the style of a text.
type textStyle struct {
	size   float64
	c      color.NRGBA
	anchor float64 // fraction of the text that is left of the point: 0, 0.5 or 1
	turned bool    // rotated to read upwards
	bold   bool    // only in themed figures
}

// Colors of everything but data.
var (
	white    = color.NRGBA{255, 255, 255, 255}
	ink      = color.NRGBA{34, 34, 34, 255}
	softInk  = color.NRGBA{90, 90, 90, 255}
	gridLine = color.NRGBA{232, 232, 232, 255}
)

// palette is the color-blind-safe palette of Okabe and Ito ("Color Universal Design",
// 2008), darker colors first.
var palette = []color.NRGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {230, 159, 0, 255}, {86, 180, 233, 255},
}

func colorOf(i int) color.NRGBA { return palette[i%len(palette)] }

// faint returns a color with the given alpha.
func faint(c color.NRGBA, alpha uint8) color.NRGBA {
	c.A = alpha
	return c
}
