package plot

import (
	"fmt"
	"html"
	"image/color"
	"strings"
)

// A Tint is a color of themed figures, for light and for dark pages.
type Tint struct{ Name, Light, Dark string }

// Tints lists the colors of themed figures. The numbered ones have Okabe and Ito's
// hues, made darker or lighter for a text contrast of 4.5.
var Tints = []Tint{
	{"page", "#ffffff", "#0d1117"},
	{"panel", "#f6f8fa", "#151b23"},
	{"box", "#ffffff", "#212830"},
	{"border", "#d0d7de", "#3d444d"},
	{"grid", "#e4e8ec", "#262d36"},
	{"ink", "#1f2328", "#f0f6fc"},
	{"soft", "#59636e", "#a2acb6"},
	{"c1", "#0067a6", "#58a6ff"},
	{"c2", "#b34700", "#ff9d5c"},
	{"c3", "#00704f", "#3fc997"},
	{"c4", "#9c3f78", "#ee9fcb"},
	{"c5", "#806000", "#e3c04f"},
	{"c6", "#4b5fa5", "#9fd4f7"},
	{"w1", "#d3e7f6", "#173a5e"}, // light backgrounds in the first hues, for text in ink
	{"w2", "#fbe1cf", "#56300f"},
	{"w3", "#cdeadf", "#0f4434"},
	{"w4", "#f6dcea", "#512642"},
	{"w5", "#f2e7bd", "#4a3d0c"},
}

// Width is the default display width of themed figures, in pixels.
const Width = 800

// Style returns the style sheet of themed figures. Every tint is a CSS variable with a
// class for fills (f-NAME) and one for strokes (s-NAME). Renderers without CSS
// variables use the light colors.
func Style() string {
	var b strings.Builder
	b.WriteString("<style>\n:root {")
	for _, t := range Tints {
		fmt.Fprintf(&b, " --%s: %s;", t.Name, t.Light)
	}
	b.WriteString(" }\n@media (prefers-color-scheme: dark) { :root {")
	for _, t := range Tints {
		fmt.Fprintf(&b, " --%s: %s;", t.Name, t.Dark)
	}
	b.WriteString(" } }\n")
	b.WriteString("text { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif }\n")
	b.WriteString(".mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace } .bold { font-weight: 600 }\n")
	for _, t := range Tints {
		fmt.Fprintf(&b, ".f-%[1]s { fill: %[2]s; fill: var(--%[1]s) } .s-%[1]s { fill: none; stroke: %[2]s; stroke: var(--%[1]s) }\n", t.Name, t.Light)
	}
	b.WriteString(".panel { fill: #f6f8fa; fill: var(--panel); stroke: #d0d7de; stroke: var(--border) } .box { fill: #ffffff; fill: var(--box); stroke: #d0d7de; stroke: var(--border) }\n")
	return b.String() + "</style>\n"
}

// Head returns the start of a themed SVG of w by h units: title and description for
// screen readers, the style sheet, and a page with round corners.
func Head(w, h float64, title, desc string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%d" height="%s" role="img" aria-labelledby="title desc">`+"\n", num(w), num(h), Width, num(h*Width/w)) +
		fmt.Sprintf("<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n", html.EscapeString(title), html.EscapeString(desc)) + Style() +
		fmt.Sprintf(`<rect class="f-page" width="%s" height="%s" rx="10"/><rect class="s-border" x="0.5" y="0.5" width="%s" height="%s" rx="9.5"/>`+"\n", num(w), num(h), num(w-1), num(h-1))
}

// Themed returns the figure as an SVG that follows the page's color scheme.
func (f *Figure) Themed(desc string) []byte {
	w, h := f.size()
	c := &svgCanvas{themed: true}
	c.b.WriteString(Head(w, h, f.Title, desc))
	f.draw(c)
	return c.bytes()
}

// tintOf returns the tint that replaces a color of figures.
func tintOf(c color.NRGBA) string {
	c.A = 255
	switch c {
	case white:
		return "page"
	case ink:
		return "ink"
	case softInk:
		return "soft"
	case gridLine:
		return "grid"
	}
	for i, p := range palette {
		if p == c {
			return fmt.Sprintf("c%d", i+1)
		}
	}
	panic("bug: a color without a tint")
}
