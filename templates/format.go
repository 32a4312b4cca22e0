package templates

import (
	"fmt"
	"io/fs"
	"strings"
	"text/template"

	"github.com/iflowc/iflowc/ir/tensor"
)

// A format is how the codes of some block types stand in a tile-block: a
// template of the C text that unpacks one tile-block, shared by all kernels.
type format struct {
	doc  string
	bits map[tensor.DType]float64 // stored bits a code
	unit int                      // stored vectors that decode together
	pick string                   // C expression of code vector j alone, or empty
	body *template.Template
}

type formatHeader struct {
	Doc   string   `yaml:"doc"`
	Types []string `yaml:"types"`
	Bits  float64  `yaml:"bits"`
	Unit  int      `yaml:"unit"` // stored vectors that decode together
	Pick  string   `yaml:"pick"` // C expression of code vector j of the tile-block at w
}

// formatArgs is what a format's template sees.
type formatArgs struct {
	Vectors int // vectors of 64 bytes in a tile-block
}

func loadFormats(fsys fs.FS) (map[tensor.DType]*format, error) {
	names, err := fs.Glob(fsys, "cpu/formats/*.c.tmpl")
	if err != nil {
		return nil, err
	}
	formats := map[tensor.DType]*format{}
	for _, name := range names {
		var h formatHeader
		t, types, err := openTemplate(fsys, name, &h, &h.Types)
		if err != nil {
			return nil, err
		}
		f := &format{doc: strings.TrimSpace(h.Doc), unit: h.Unit, pick: h.Pick, body: t, bits: map[tensor.DType]float64{}}
		for _, dt := range types {
			if formats[dt] != nil {
				return nil, fmt.Errorf("template %s: type %s has another format file", name, dt)
			}
			f.bits[dt], formats[dt] = h.Bits, f
		}
	}
	return formats, nil
}

// vectors is the number of stored vectors of 64 bytes in a tile-block: 16 rows
// of Block codes.
func (f *format) vectors(dt tensor.DType) int {
	return int(16 * float64(dt.Block()) * f.bits[dt] / 8 / 64)
}

// decodeVectors is the C text that hands each vector of codes of a tile-block
// at w to USE(j, codes), j from 0 to Block/4-1.
func (f *format) decodeVectors(n int) (string, error) {
	var b strings.Builder
	if err := f.body.Execute(&b, formatArgs{n}); err != nil {
		return "", fmt.Errorf("format %s: %w", f.body.Name(), err)
	}
	return indent(b.String()), nil
}

// indent lays statements out as they stand in the body of a loop.
func indent(text string) string {
	var lines []string
	whole := true // the line before ended its statement
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		margin := "    "
		if !whole {
			margin += "     "
		}
		lines = append(lines, margin+line)
		whole = strings.HasSuffix(line, ";")
	}
	return strings.Join(lines, "\n")
}
