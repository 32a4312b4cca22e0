package plot

import (
	"fmt"
	"html"
	"image/color"
	"strings"
)

// An svgCanvas writes SVG, with literal colors or with classes of the theme.
type svgCanvas struct {
	b      strings.Builder
	themed bool
}

func newSVG(w, h float64) *svgCanvas {
	c := &svgCanvas{}
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %[1]s %[2]s" font-family="Go, Helvetica, Arial, sans-serif">`+"\n", num(w), num(h))
	fmt.Fprintf(&c.b, `<rect width="100%%" height="100%%" fill="%s"/>`+"\n", hex(white))
	return c
}

func (c *svgCanvas) bytes() []byte { return []byte(c.b.String() + "</svg>\n") }

func (c *svgCanvas) line(points []point, color color.NRGBA, width float64, dashed bool) {
	dash := ""
	if dashed {
		dash = ` stroke-dasharray="3 3"`
	}
	paint := `fill="none" stroke="` + hex(color) + `"`
	if c.themed {
		paint = `class="s-` + tintOf(color) + `"`
	}
	fmt.Fprintf(&c.b, `<polyline points="%s" %s stroke-width="%s" stroke-linejoin="round"%s/>`+"\n", list(points), paint, num(width), dash)
}

func (c *svgCanvas) area(points []point, color color.NRGBA) {
	opacity := ""
	if color.A < 255 {
		opacity = fmt.Sprintf(` fill-opacity="%.2f"`, float64(color.A)/255)
	}
	fmt.Fprintf(&c.b, `<polygon points="%s" %s%s/>`+"\n", list(points), c.fill(color), opacity)
}

func (c *svgCanvas) fill(color color.NRGBA) string {
	if c.themed {
		return `class="f-` + tintOf(color) + `"`
	}
	return `fill="` + hex(color) + `"`
}

func (c *svgCanvas) text(at point, s string, t textStyle) {
	anchor, turn := "", ""
	switch t.anchor {
	case 0.5:
		anchor = ` text-anchor="middle"`
	case 1:
		anchor = ` text-anchor="end"`
	}
	paint := c.fill(t.c)
	if t.bold && c.themed {
		paint = `class="f-` + tintOf(t.c) + ` bold"`
	}
	if t.turned {
		turn = fmt.Sprintf(` transform="rotate(-90 %s %s)"`, num(at.x), num(at.y))
	}
	fmt.Fprintf(&c.b, `<text x="%s" y="%s" font-size="%s" %s%s%s>%s</text>`+"\n", num(at.x), num(at.y), num(t.size), paint, anchor, turn, html.EscapeString(s))
}

// num formats a coordinate; a tenth of a unit is finer than print.
func num(x float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0")
}

func list(points []point) string {
	var b strings.Builder
	for i, p := range points {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(num(p.x) + "," + num(p.y))
	}
	return b.String()
}

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }
