package plot

import (
	"image"
	"image/color"
	"image/draw"
	"math"

	"golang.org/x/image/vector"
)

// A rasterCanvas draws anti-aliased pixels.
type rasterCanvas struct {
	image *image.RGBA
	scale float64
	fill  *vector.Rasterizer
}

func newRaster(w, h, scale float64) *rasterCanvas {
	c := &rasterCanvas{image.NewRGBA(image.Rect(0, 0, int(math.Ceil(w*scale)), int(math.Ceil(h*scale)))), scale, vector.NewRasterizer(1, 1)}
	draw.Draw(c.image, c.image.Bounds(), image.NewUniform(white), image.Point{}, draw.Src)
	return c
}

// A stroke is a closed outline in pixels. Its segments are straight lines, or quadratic
// curves if they have a control point.
type stroke []segment

type segment struct {
	control, to point
	curved      bool
}

// paint fills the union of outlines, which must have the same orientation.
func (c *rasterCanvas) paint(outlines []stroke, color color.NRGBA) {
	box := c.box(outlines)
	if box.Empty() {
		return
	}
	c.fill.Reset(box.Dx(), box.Dy())
	at := func(p point) (x, y float32) {
		return float32(p.x - float64(box.Min.X)), float32(p.y - float64(box.Min.Y))
	}
	for _, o := range outlines {
		for i, s := range o {
			x, y := at(s.to)
			switch {
			case i == 0:
				c.fill.MoveTo(x, y)
			case s.curved:
				cx, cy := at(s.control)
				c.fill.QuadTo(cx, cy, x, y)
			default:
				c.fill.LineTo(x, y)
			}
		}
		c.fill.ClosePath()
	}
	c.fill.Draw(c.image, box, image.NewUniform(color), image.Point{})
}

// box returns the part of the image that contains outlines.
func (c *rasterCanvas) box(outlines []stroke) image.Rectangle {
	low, high := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
	for _, o := range outlines {
		for _, s := range o {
			for _, p := range []point{s.to, s.control} {
				if p == s.control && !s.curved {
					continue
				}
				low = point{min(low.x, p.x), min(low.y, p.y)}
				high = point{max(high.x, p.x), max(high.y, p.y)}
			}
		}
	}
	if !(low.x <= high.x) {
		return image.Rectangle{}
	}
	size := c.image.Bounds().Size()
	bound := func(x float64, most int) int { return int(min(max(x, 0), float64(most))) }
	return image.Rect(bound(math.Floor(low.x)-1, size.X), bound(math.Floor(low.y)-1, size.Y),
		bound(math.Ceil(high.x)+1, size.X), bound(math.Ceil(high.y)+1, size.Y))
}

func (c *rasterCanvas) area(points []point, color color.NRGBA) {
	c.paint([]stroke{c.polygon(points)}, color)
}

// polygon returns the outline of a polygon in pixels.
func (c *rasterCanvas) polygon(points []point) (o stroke) {
	for _, p := range points {
		o = append(o, segment{to: point{p.x * c.scale, p.y * c.scale}})
	}
	return o
}

func (c *rasterCanvas) line(points []point, color color.NRGBA, width float64, dashed bool) {
	var outlines []stroke
	draw := func(a, b point) {
		if length := math.Hypot(b.x-a.x, b.y-a.y); length > 0 {
			nx, ny := (b.y-a.y)/length*width/2, (a.x-b.x)/length*width/2
			outlines = append(outlines, c.polygon([]point{{a.x + nx, a.y + ny}, {b.x + nx, b.y + ny}, {b.x - nx, b.y - ny}, {a.x - nx, a.y - ny}}))
		}
	}
	for i := 1; i < len(points); i++ {
		if dashed {
			dashes(points[i-1], points[i], draw)
			continue
		}
		draw(points[i-1], points[i])
		if i+1 < len(points) {
			outlines = append(outlines, c.polygon(disc(points[i], width/2)))
		}
	}
	c.paint(outlines, color)
}

// dashes splits a segment into dashes of 3 units with gaps of 3.
func dashes(a, b point, draw func(a, b point)) {
	length := math.Hypot(b.x-a.x, b.y-a.y)
	at := func(d float64) point {
		return point{a.x + (b.x-a.x)*d/length, a.y + (b.y-a.y)*d/length}
	}
	for d := 0.0; d < length; d += 6 {
		draw(at(d), at(min(d+3, length)))
	}
}

// disc returns a circle as a polygon with the orientation of lines' quads.
func disc(at point, r float64) (points []point) {
	const corners = 24
	for i := range corners {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		points = append(points, point{at.x + r*cos, at.y + r*sin})
	}
	return points
}

func (c *rasterCanvas) text(at point, s string, t textStyle) {
	x := -t.anchor * textWidth(s, t.size)
	place := func(px, py float64) point {
		if t.turned {
			return point{(at.x + py) * c.scale, (at.y - px) * c.scale}
		}
		return point{(at.x + px) * c.scale, (at.y + py) * c.scale}
	}
	for _, r := range s {
		g := glyphOf(r)
		unit := t.size / emUnits
		var outlines []stroke
		for _, o := range g.outlines {
			var placed stroke
			for _, p := range o {
				placed = append(placed, segment{place(x+p.control.x*unit, p.control.y*unit), place(x+p.to.x*unit, p.to.y*unit), p.curved})
			}
			outlines = append(outlines, placed)
		}
		c.paint(outlines, t.c)
		x += g.advance * unit
	}
}
