package main

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/plot"
)

// A picture is a themed SVG. Its classes are those of plot.Style.
type picture struct{ b strings.Builder }

// newPicture returns an empty picture of plot.Width by h units.
func newPicture(h float64, title, desc string) *picture {
	p := &picture{}
	p.b.WriteString(plot.Head(plot.Width, h, title, desc))
	return p
}

func (p *picture) bytes() []byte { return []byte(p.b.String() + "</svg>\n") }

// raw adds markup.
func (p *picture) raw(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

// head writes the picture's title and a line below it.
func (p *picture) head(title, note string) {
	p.text(20, 31, 16, "f-ink bold", title)
	p.text(20, 51, 12.5, "f-soft", note)
}

func (p *picture) rect(x, y, w, h, round float64, class string) {
	p.raw(`<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="%s"/>`, class, num(x), num(y), num(w), num(h), num(round))
}

// text writes a line that starts at x; its baseline is at y.
func (p *picture) text(x, y, size float64, class, s string) { p.anchored(x, y, size, class, "", s) }

// middle writes a line centered at x, end one that ends at x.
func (p *picture) middle(x, y, size float64, class, s string) {
	p.anchored(x, y, size, class, ` text-anchor="middle"`, s)
}

func (p *picture) end(x, y, size float64, class, s string) {
	p.anchored(x, y, size, class, ` text-anchor="end"`, s)
}

func (p *picture) anchored(x, y, size float64, class, anchor, s string) {
	p.raw(`<text class="%s" x="%s" y="%s" font-size="%s"%s>%s</text>`, class, num(x), num(y), num(size), anchor, html.EscapeString(s))
}

func (p *picture) line(x0, y0, x1, y1, width float64, class string) {
	p.raw(`<path class="%s" stroke-width="%s" d="M%s %sL%s %s"/>`, class, num(width), num(x0), num(y0), num(x1), num(y1))
}

// arrow draws a line with an arrowhead at its end, in the color of a tint.
func (p *picture) arrow(x0, y0, x1, y1 float64, tint string) {
	const size = 4.5
	dx, dy := x1-x0, y1-y0
	if dx != 0 {
		dx, dy = sign(dx), 0
	} else {
		dy = sign(dy)
	}
	p.line(x0, y0, x1-dx*size, y1-dy*size, 1.6, "s-"+tint)
	p.raw(`<path class="f-%s" d="M%s %sL%s %sL%s %sz"/>`, tint, num(x1), num(y1),
		num(x1-dx*2*size+dy*size), num(y1-dy*2*size+dx*size), num(x1-dx*2*size-dy*size), num(y1-dy*2*size-dx*size))
}

func sign(v float64) float64 {
	if v < 0 {
		return -1
	}
	return 1
}

// num formats a coordinate.
func num(v float64) string { return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") }

// dataDir contains the measurements.
const dataDir = "docs/benchmarks/data"

// readData reads a committed measurement.
func readData(name string, to any) error {
	path := filepath.Join(root, dataDir, name)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// thousands formats a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}
