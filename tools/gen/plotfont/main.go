// Command plotfont writes runtime/kit/plot/glyphs.txt: the outlines of those
// characters of the Go font that plots use. Compiled models carry this selection
// instead of the font and a font parser.
//
//	go generate ./runtime/kit/plot
package main

import (
	"fmt"
	"log"
	"os"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// others are the characters besides those of ASCII.
const others = "µ·×–—…→≤≥±°²³éäöü"

const head = `# Outlines of characters of Go Regular, by Bigelow & Holmes; license: BSD-3-Clause, that of the Go project.
# tools/gen/plotfont writes this file: code, advance, path.
`

func main() {
	log.SetFlags(0)
	f, err := sfnt.Parse(goregular.TTF)
	if err != nil {
		log.Fatal("plotfont: ", err)
	}
	var b strings.Builder
	b.WriteString(head)
	characters := others
	for r := '~'; r >= ' '; r-- {
		characters = string(r) + characters
	}
	for _, r := range characters {
		if err := write(&b, f, r); err != nil {
			log.Fatalf("plotfont: %q: %v", r, err)
		}
	}
	if err := os.WriteFile("glyphs.txt", []byte(b.String()), 0o644); err != nil {
		log.Fatal("plotfont: ", err)
	}
}

// write writes one character's line.
func write(b *strings.Builder, f *sfnt.Font, r rune) error {
	var buffer sfnt.Buffer
	em := fixed.Int26_6(f.UnitsPerEm()) // so that a unit of the font is 1/64
	index, err := f.GlyphIndex(&buffer, r)
	if err != nil {
		return err
	}
	if index == 0 {
		return fmt.Errorf("the font has no such character")
	}
	advance, err := f.GlyphAdvance(&buffer, index, em, font.HintingNone)
	if err != nil {
		return err
	}
	segments, err := f.LoadGlyph(&buffer, index, em, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "%d %d", r, advance)
	for _, s := range segments {
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			fmt.Fprintf(b, " M %d %d", s.Args[0].X, s.Args[0].Y)
		case sfnt.SegmentOpLineTo:
			fmt.Fprintf(b, " L %d %d", s.Args[0].X, s.Args[0].Y)
		case sfnt.SegmentOpQuadTo:
			fmt.Fprintf(b, " Q %d %d %d %d", s.Args[0].X, s.Args[0].Y, s.Args[1].X, s.Args[1].Y)
		default:
			return fmt.Errorf("cubic curves are not of this font")
		}
	}
	b.WriteByte('\n')
	return nil
}
