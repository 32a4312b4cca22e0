package plot

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:generate go run ../../../tools/gen/plotfont

// glyphText holds the outlines of the Go font's characters that plots use, a
// line each: the character's code, its advance, and its path in units of the
// font with y down (M x y, L x y, Q x y x y). tools/gen/plotfont writes it.
//
//go:embed glyphs.txt
var glyphText string

// emUnits is the em size of the font in font units.
const emUnits = 2048

// A glyph is the outline of a character.
type glyph struct {
	advance  float64
	outlines []stroke
}

// glyphs returns the font's outlines, parsed once.
var glyphs = sync.OnceValue(func() map[rune]glyph {
	out := map[rune]glyph{}
	for line := range strings.Lines(glyphText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		r, g, err := parseGlyph(strings.Fields(line))
		if err != nil {
			panic("bug: glyphs.txt: " + err.Error())
		}
		out[r] = g
	}
	return out
})

// parseGlyph parses a line of glyphText.
func parseGlyph(words []string) (r rune, g glyph, err error) {
	number := func() float64 {
		if len(words) == 0 {
			err = fmt.Errorf("unexpected end of line")
			return 0
		}
		n, e := strconv.Atoi(words[0])
		if e != nil {
			err = e
		}
		words = words[1:]
		return float64(n)
	}
	at := func() point { x := number(); return point{x, number()} }
	r, g.advance = rune(number()), number()
	for len(words) > 0 && err == nil {
		command := words[0]
		words = words[1:]
		last := len(g.outlines) - 1
		switch {
		case command == "M":
			g.outlines = append(g.outlines, stroke{{to: at()}})
		case command == "L" && last >= 0:
			g.outlines[last] = append(g.outlines[last], segment{to: at()})
		case command == "Q" && last >= 0:
			g.outlines[last] = append(g.outlines[last], segment{control: at(), to: at(), curved: true})
		default:
			return r, g, fmt.Errorf("unexpected command %q; expected M, L or Q", command)
		}
	}
	return r, g, err
}

// glyphOf returns the outline of a character, or that of a question mark if the font's
// subset lacks it.
func glyphOf(r rune) glyph {
	if g, ok := glyphs()[r]; ok {
		return g
	}
	return glyphs()['?']
}

// textWidth returns the width of a line of text in units.
func textWidth(s string, size float64) (w float64) {
	for _, r := range s {
		w += glyphOf(r).advance
	}
	return w * size / emUnits
}
